package main

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// caller runs one unit of work. It fails if the outcome is wrong.
type caller func(context.Context) error

// load is the result of a closed loop: each worker starts the next unit when it has the outcome of the last one.
type load struct {
	latencies []time.Duration // in no order
	spent     time.Duration
}

// perSecond returns how many units ended per second.
func (l load) perSecond() float64 { return float64(len(l.latencies)) / l.spent.Seconds() }

// drive keeps inFlight units running for at least the given time. Each worker runs at least one.
func drive(ctx context.Context, call caller, inFlight int, least time.Duration) (load, error) {
	workers := make([][]time.Duration, inFlight)
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for worker := range workers {
		group.Go(func() error {
			for time.Since(start) < least || len(workers[worker]) == 0 {
				began := time.Now()
				if err := call(ctx); err != nil {
					return err
				}
				workers[worker] = append(workers[worker], time.Since(began))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return load{}, err
	}
	return load{latencies: slices.Concat(workers...), spent: time.Since(start)}, nil
}
