// Package mem is a store in memory, for tests and for commands that keep nothing.
package mem

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/store"
)

// Store is a store.Store in memory. Make one with New.
type Store struct {
	mu      sync.RWMutex
	objects map[string][]byte
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{objects: map[string][]byte{}} }

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := ready(ctx, "get", key); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	data, ok := s.objects[key]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	return append([]byte{}, data...), nil
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	if err := ready(ctx, "put", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = append([]byte{}, data...)
	return nil
}

// PutIfAbsent implements store.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := ready(ctx, "put if absent", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.objects[key]; ok {
		if bytes.Equal(old, data) {
			return nil
		}
		return fmt.Errorf("put if absent %s: %w", key, store.ErrExists)
	}
	s.objects[key] = append([]byte{}, data...)
	return nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]store.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := []store.Object{}
	for key, data := range s.objects {
		if strings.HasPrefix(key, prefix) {
			out = append(out, store.Object{Key: key, Size: int64(len(data))})
		}
	}
	slices.SortFunc(out, func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ready(ctx, "delete", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
	return nil
}

// String implements store.Store.
func (s *Store) String() string { return "memory" }

func ready(ctx context.Context, op, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", op, key, err)
	}
	if err := store.CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}
