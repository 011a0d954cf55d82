package main

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// measure keeps inFlight calls under way for at least the given time, after a short warm-up.
func measure(ctx context.Context, call caller, inFlight int, least time.Duration) (row, error) {
	if _, err := latencies(ctx, call, inFlight, least/10); err != nil {
		return row{}, err
	}
	began := time.Now()
	all, err := latencies(ctx, call, inFlight, least)
	if err != nil {
		return row{}, err
	}
	spent := time.Since(began)
	slices.Sort(all)
	return row{
		InFlight: inFlight, Calls: len(all), CallsPerSecond: float64(len(all)) / spent.Seconds(),
		P50Ms: milliseconds(quantile(all, 0.50)), P99Ms: milliseconds(quantile(all, 0.99)),
	}, nil
}

// latencies returns those of every call, in no order.
func latencies(ctx context.Context, call caller, inFlight int, least time.Duration) ([]time.Duration, error) {
	lanes := make([][]time.Duration, inFlight)
	group, ctx := errgroup.WithContext(ctx)
	end := time.Now().Add(least)
	for lane := range lanes {
		group.Go(func() error {
			for time.Now().Before(end) || len(lanes[lane]) == 0 {
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
		return nil, err
	}
	return slices.Concat(lanes...), nil
}

// quantile is the nearest-rank one of sorted, non-empty durations.
func quantile(sorted []time.Duration, q float64) time.Duration {
	rank := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
