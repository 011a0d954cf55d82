// Package overlay is a store over another store that it never writes to. What is put stays in memory; what is not in
// memory is read from the store below.
package overlay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// Store is a store.Store whose writes stay in memory. Make one with New.
type Store struct {
	base  store.Store
	above *mem.Store

	mu   sync.Mutex      // makes conditional puts and deletions atomic over both layers
	gone map[string]bool // deleted here, still in the store below
}

var _ store.Store = (*Store)(nil)

// New returns a store that contains the objects of base.
func New(base store.Store) *Store {
	return &Store{base: base, above: mem.New(), gone: map[string]bool{}}
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := s.above.Get(ctx, key)
	if !errors.Is(err, store.ErrNotFound) || s.deleted(key) {
		return data, err
	}
	return s.base.Get(ctx, key)
}

func (s *Store) deleted(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone[key]
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.above.Put(ctx, key, data)
}

// PutFrom implements store.Store.
func (s *Store) PutFrom(ctx context.Context, key string, content io.ReaderAt, size int64) error {
	return s.above.PutFrom(ctx, key, content, size)
}

// GetRange implements store.Store.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	data, err := s.above.GetRange(ctx, key, offset, length)
	if !errors.Is(err, store.ErrNotFound) || s.deleted(key) {
		return data, err
	}
	return s.base.GetRange(ctx, key, offset, length)
}

// MaxObject implements store.Store.
func (s *Store) MaxObject() int64 { return s.above.MaxObject() }

// PutIfAbsent implements store.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone[key] {
		switch beneath, err := s.base.Get(ctx, key); {
		case err == nil && bytes.Equal(beneath, data):
			return nil
		case err == nil:
			return fmt.Errorf("put if absent %s: %w", key, store.ErrExists)
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	return s.above.PutIfAbsent(ctx, key, data)
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]store.Object, error) {
	out, err := s.above.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{}
	for _, o := range out {
		mine[o.Key] = true
	}
	beneath, err := s.base.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for _, o := range beneath {
		if !mine[o.Key] && !s.deleted(o.Key) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// Delete implements store.Store. The object in the store below stays but is no longer visible.
func (s *Store) Delete(ctx context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.above.Delete(ctx, key); err != nil {
		return err
	}
	s.gone[key] = true
	return nil
}

// String implements store.Store.
func (s *Store) String() string { return s.base.String() + ", read only, with writes kept in memory" }
