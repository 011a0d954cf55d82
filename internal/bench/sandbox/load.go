package sandbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/internal/bench"
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

// quantiles returns the 50th and the 99th percentile in milliseconds. It sorts the latencies.
func quantiles(latencies []time.Duration) (p50, p99 float64) {
	slices.Sort(latencies)
	return bench.Milliseconds(bench.Quantile(latencies, 0.50)), bench.Milliseconds(bench.Quantile(latencies, 0.99))
}

// latency measures with 2 and with 64 calls in flight.
func (b *benchmark) latency(ctx context.Context) error {
	for _, c := range []struct {
		inFlight         int
		mostP50, mostP99 float64 // goals; 0 = none
	}{{2, 1.5, 5}, {64, 0, 110}} {
		if _, err := drive(ctx, b.one, c.inFlight, b.round/10); err != nil {
			return err
		}
		var p50, p99 []float64
		for range b.rounds {
			l, err := drive(ctx, b.one, c.inFlight, b.round)
			if err != nil {
				return err
			}
			middle, late := quantiles(l.latencies)
			p50, p99 = append(p50, middle), append(p99, late)
		}
		middle := bench.Of("p50 ms", bench.Median(p50))
		if c.mostP50 > 0 {
			middle = middle.AtMost(c.mostP50)
		}
		b.report.Add(fmt.Sprintf("latency, %d in flight", c.inFlight), middle,
			bench.Of("p99 ms", bench.Median(p99)).AtMost(c.mostP99))
	}
	return nil
}
