// Package mem is a store in memory, for tests and for commands that keep no record.
package mem

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/store"
)

// Store is a store.Store in memory. Make one with New.
type Store struct {
	mu      sync.RWMutex
	objects map[string]object
	now     func() time.Time
}

type object struct {
	data     []byte
	modified time.Time
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return NewAt(time.Now) }

// NewAt returns an empty store whose objects take their times from the clock now.
func NewAt(now func() time.Time) *Store { return &Store{objects: map[string]object{}, now: now} }

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := checkContext(ctx, "get", key); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.objects[key]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	return append([]byte{}, o.data...), nil
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	if err := checkContext(ctx, "put", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = object{append([]byte{}, data...), s.now()}
	return nil
}

// PutFrom implements store.Store.
func (s *Store) PutFrom(ctx context.Context, key string, content io.ReaderAt, size int64) error {
	if err := checkContext(ctx, "put", key); err != nil {
		return err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(content, 0, size), data); err != nil {
		return fmt.Errorf("put %s: read the content of %d bytes: %w", key, size, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = object{data, s.now()}
	return nil
}

// GetRange implements store.Store.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := checkContext(ctx, "get", key); err != nil {
		return nil, err
	}
	if err := store.CheckRange(key, offset, length); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.objects[key]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	data := o.data[min(offset, int64(len(o.data))):]
	return bytes.Clone(data[:min(length, int64(len(data)))]), nil
}

// MaxObject implements store.Store: memory has no limit.
func (s *Store) MaxObject() int64 { return math.MaxInt64 }

// PutIfAbsent implements store.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := checkContext(ctx, "put if absent", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.objects[key]; ok {
		if bytes.Equal(old.data, data) {
			return nil
		}
		return fmt.Errorf("put if absent %s: %w", key, store.ErrExists)
	}
	s.objects[key] = object{append([]byte{}, data...), s.now()}
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
	for key, o := range s.objects {
		if strings.HasPrefix(key, prefix) {
			out = append(out, store.Object{Key: key, Size: int64(len(o.data)), Modified: o.modified})
		}
	}
	slices.SortFunc(out, func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := checkContext(ctx, "delete", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
	return nil
}

// String implements store.Store.
func (s *Store) String() string { return "memory" }

func checkContext(ctx context.Context, op, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", op, key, err)
	}
	if err := store.CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}
