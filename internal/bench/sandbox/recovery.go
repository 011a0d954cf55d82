package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
)

// underLoad is how many calls are in flight when the service is killed.
const underLoad = 64

// recover kills the service under load with SIGKILL, starts it again at the same address, and measures the time from
// the kill to the first verdict of the new one. The client that made the load must get exactly one verdict on each
// call, and the right one.
func (b *benchmark) recover(ctx context.Context) error {
	var took []float64
	for range b.rounds {
		ms, err := b.recoverOnce(ctx)
		if err != nil {
			return err
		}
		took = append(took, ms)
	}
	b.result.Recovery = pointer(bench.Median(took))
	return nil
}

func (b *benchmark) recoverOnce(ctx context.Context) (ms float64, err error) {
	s, err := b.serve(ctx, "")
	if err != nil {
		return 0, err
	}
	defer func() { s.stop() }()
	if err := s.await(ctx, b.call, b.output); err != nil {
		return 0, err
	}
	client, err := dial(s.address)
	if err != nil {
		return 0, err
	}
	defer closeAfter(client, &err)
	var stop atomic.Bool
	defer stop.Store(true)
	loaded := b.keepAsking(ctx, client, &stop)
	if err := wait(ctx, b.round); err != nil {
		return 0, err
	}
	began := time.Now()
	s.kill()
	if s, err = b.serve(ctx, s.address); err != nil {
		return 0, err
	}
	bare := sandbox.Call{Code: plain.code, Packages: sandbox.PackagesBare}
	if err := s.await(ctx, bare, plain.output); err != nil {
		return 0, fmt.Errorf("after the kill: %w", err)
	}
	ms = bench.Milliseconds(time.Since(began))
	if err := wait(ctx, b.round); err != nil {
		return 0, err
	}
	stop.Store(true)
	return ms, loaded()
}

// keepAsking runs numbered calls until it is told to stop. The returned function waits for all verdicts.
func (b *benchmark) keepAsking(ctx context.Context, e sandbox.Executor, stop *atomic.Bool) func() error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range underLoad {
		group.Go(func() error {
			for !stop.Load() {
				if a := b.askFor(ctx, e, int(next.Add(1))); a.broken != nil {
					return fmt.Errorf("a call under way when the service was killed: %w", a.broken)
				}
			}
			return nil
		})
	}
	return func() error {
		err := group.Wait()
		if err == nil && next.Load() == 0 {
			err = errors.New("no call was under way when the service was killed")
		}
		return err
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
