package main

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
)

// cold measures the time from starting the service to its first verdict on a bare call, and on the call.
func (b *benchmark) cold(ctx context.Context) error {
	var bare, all []float64
	for range b.rounds {
		began := time.Now()
		s, err := b.serve(ctx, "")
		if err != nil {
			return err
		}
		first := s.await(ctx, sandbox.Call{Code: plain.code, Packages: sandbox.PackagesBare}, plain.output)
		bare = append(bare, bench.Milliseconds(time.Since(began)))
		var second error
		if first == nil {
			second = s.await(ctx, b.call, b.output)
			all = append(all, bench.Milliseconds(time.Since(began)))
		}
		s.stop()
		if first != nil {
			return first
		}
		if second != nil {
			return second
		}
	}
	b.result.Cold, b.result.ColdLoaded = pointer(bench.Median(bare)), pointer(bench.Median(all))
	return nil
}
