// Package faults decorates a store with faults, for tests.
//
// A *rule* says which calls it matches (an operation, a part of the key, the nth such call) and what happens to them.
// The first rule that matches a call decides; a call that no rule matches goes to the inner store unchanged. The log
// lists every call in order, so that a test can check what was done.
package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/store"
)

// ErrInjected is the error of a fault whose rule names no other.
var ErrInjected = errors.New("injected fault")

// Op is an operation of a store.
type Op string

// The operations. Get also matches GetRange, and Put also matches PutFrom.
const (
	Get         Op = "get"
	Put         Op = "put"
	PutIfAbsent Op = "put-if-absent"
	List        Op = "list"
	Delete      Op = "delete"
)

// Effect is what a fault does to a call.
type Effect int

const (
	// Fail does not perform the operation and returns the error.
	Fail Effect = iota
	// LostAck performs the operation and returns the error.
	LostAck
	// Torn stores, or returns from Get, only the first half of the bytes; a put also returns the error. It breaks the
	// store's contract on purpose, like a disk that lies.
	Torn
	// TornSilently is Torn without an error.
	TornSilently
	// Delay waits, at most until the context ends, and then performs the operation.
	Delay
)

// Rule matches calls and says what happens to them.
type Rule struct {
	Op  Op     // empty matches every operation
	Key string // a part of the key or of the prefix of a list; empty matches every key
	// Nth selects which of the calls that Op and Key match is faulty, from 1; 0 selects all of them.
	Nth    int
	Effect Effect
	Err    error         // ErrInjected when nil
	Delay  time.Duration // of the Delay effect
	// Before is called, if set, before the fault takes effect, so that a test can interleave calls.
	Before func()
}

// Call is one line of the log.
type Call struct {
	Op  Op
	Key string
}

// Store decorates a store with faults. Make one with New.
type Store struct {
	inner store.Store
	rules []Rule
	limit int64 // of an object's size; 0 uses the inner store's limit

	mu  sync.Mutex
	met []int // by rule
	log []Call
}

var _ store.Store = (*Store)(nil)

// New returns a store that passes calls to inner, with faults.
func New(inner store.Store, rules ...Rule) *Store {
	return &Store{inner: inner, rules: rules, met: make([]int, len(rules))}
}

// WithMaxObject gives the store a limit on the size of an object, in bytes, and returns it.
func (s *Store) WithMaxObject(limit int64) *Store {
	s.limit = limit
	return s
}

// MaxObject implements store.Store.
func (s *Store) MaxObject() int64 {
	if s.limit > 0 {
		return s.limit
	}
	return s.inner.MaxObject()
}

// Log returns every call so far, in order.
func (s *Store) Log() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Count returns how many calls of op so far had part in their key.
func (s *Store) Count(op Op, part string) int {
	n := 0
	for _, c := range s.Log() {
		if c.Op == op && strings.Contains(c.Key, part) {
			n++
		}
	}
	return n
}

// match logs a call and returns the rule whose fault it gets, if any. Every rule that matches counts the call, so that
// the numbers of one rule do not depend on the others.
func (s *Store) match(op Op, key string) *Rule {
	s.mu.Lock()
	s.log = append(s.log, Call{op, key})
	var fault *Rule
	for i := range s.rules {
		r := &s.rules[i]
		if (r.Op != "" && r.Op != op) || !strings.Contains(key, r.Key) {
			continue
		}
		s.met[i]++
		if fault == nil && (r.Nth == 0 || r.Nth == s.met[i]) {
			fault = r
		}
	}
	s.mu.Unlock()
	if fault != nil && fault.Before != nil {
		fault.Before()
	}
	return fault
}

func (r *Rule) err(op Op, key string) error {
	if r.Err != nil {
		return fmt.Errorf("%s %s: %w", op, key, r.Err)
	}
	return fmt.Errorf("%s %s: %w", op, key, ErrInjected)
}

// run performs a call that returns no bytes, with the fault that it gets. do is told whether to use only half of the
// bytes.
func (s *Store) run(ctx context.Context, op Op, key string, do func(torn bool) error) error {
	fault := s.match(op, key)
	if fault == nil {
		return do(false)
	}
	switch fault.Effect {
	case Delay:
		if err := wait(ctx, fault.Delay); err != nil {
			return fmt.Errorf("%s %s: %w", op, key, err)
		}
		return do(false)
	case LostAck, Torn:
		if err := do(fault.Effect == Torn); err != nil {
			return err
		}
	case TornSilently:
		return do(true)
	}
	return fault.err(op, key)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func half(data []byte, torn bool) []byte {
	if torn {
		return data[:len(data)/2]
	}
	return data
}

// read performs a call that returns bytes.
func (s *Store) read(ctx context.Context, key string, get func() ([]byte, error)) (data []byte, err error) {
	err = s.run(ctx, Get, key, func(torn bool) error {
		all, err := get()
		data = half(all, torn)
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	return s.read(ctx, key, func() ([]byte, error) { return s.inner.Get(ctx, key) })
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.run(ctx, Put, key, func(torn bool) error { return s.inner.Put(ctx, key, half(data, torn)) })
}

// PutFrom implements store.Store.
func (s *Store) PutFrom(ctx context.Context, key string, content io.ReaderAt, size int64) error {
	if err := store.CheckSize(s, key, size); err != nil {
		return err
	}
	return s.run(ctx, Put, key, func(torn bool) error {
		if torn {
			size /= 2
		}
		return s.inner.PutFrom(ctx, key, content, size)
	})
}

// GetRange implements store.Store.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	return s.read(ctx, key, func() ([]byte, error) { return s.inner.GetRange(ctx, key, offset, length) })
}

// PutIfAbsent implements store.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return s.run(ctx, PutIfAbsent, key,
		func(torn bool) error { return s.inner.PutIfAbsent(ctx, key, half(data, torn)) })
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix string) (objects []store.Object, err error) {
	err = s.run(ctx, List, prefix, func(bool) error {
		objects, err = s.inner.List(ctx, prefix)
		return err
	})
	if err != nil {
		return nil, err
	}
	return objects, nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.run(ctx, Delete, key, func(bool) error { return s.inner.Delete(ctx, key) })
}

// String implements store.Store.
func (s *Store) String() string { return s.inner.String() + " with faults" }
