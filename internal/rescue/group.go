package rescue

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Group is an errgroup.Group whose functions may panic: such a function returns its *Panic.
type Group struct{ *errgroup.Group }

// WithContext returns a group, and a context that ends with the group's first error.
func WithContext(ctx context.Context) (Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	return Group{g}, ctx
}

// Go calls f in a goroutine, as errgroup.Group.Go does.
func (g Group) Go(f func() error) { g.Group.Go(func() error { return Do(f) }) }

// Each calls f for 0…n−1, at most limit at a time, and returns the first error.
func Each(ctx context.Context, limit, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := WithContext(ctx)
	g.SetLimit(limit)
	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}

// WaitGroup is a sync.WaitGroup whose functions may panic: Wait then panics in their place, in a goroutine that can be
// recovered.
type WaitGroup struct {
	group sync.WaitGroup
	first atomic.Pointer[Panic]
}

// Go calls f in a goroutine.
func (w *WaitGroup) Go(f func()) {
	w.group.Go(func() {
		if err := Do(func() error { f(); return nil }); err != nil {
			w.first.CompareAndSwap(nil, caught(err))
		}
	})
}

// Wait waits for all functions, and panics with the first *Panic if there was one.
func (w *WaitGroup) Wait() {
	w.group.Wait()
	if p := w.first.Load(); p != nil {
		panic(p)
	}
}
