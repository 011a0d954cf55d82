package main

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// caller runs one unit of work and fails unless its outcome is what it must be.
type caller func(context.Context) error

// load is what a closed loop saw: each lane hands over the next unit when it has the last one's outcome.
type load struct {
	latencies []time.Duration // in no order
	spent     time.Duration
}

// perSecond is how many units ended a second.
func (l load) perSecond() float64 { return float64(len(l.latencies)) / l.spent.Seconds() }

// drive keeps inFlight units under way for at least the given time, and each lane runs one at least.
func drive(ctx context.Context, call caller, inFlight int, least time.Duration) (load, error) {
	lanes := make([][]time.Duration, inFlight)
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for lane := range lanes {
		group.Go(func() error {
			for time.Since(start) < least || len(lanes[lane]) == 0 {
				began := time.Now()
				if err := call(ctx); err != nil {
					return err
				}
				lanes[lane] = append(lanes[lane], time.Since(began))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return load{}, err
	}
	return load{latencies: slices.Concat(lanes...), spent: time.Since(start)}, nil
}
