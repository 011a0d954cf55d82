package main

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// latency measures with 2 and with 64 calls in flight.
func (b *benchmark) latency(ctx context.Context) (err error) {
	if b.result.Latency2, err = b.latencyAt(ctx, 2); err != nil {
		return err
	}
	b.result.Latency64, err = b.latencyAt(ctx, 64)
	return err
}

// latencyAt returns the medians of the rounds' quantiles.
func (b *benchmark) latencyAt(ctx context.Context, inFlight int) (*latency, error) {
	if _, err := drive(ctx, b.one, inFlight, b.round/10); err != nil {
		return nil, err
	}
	var p50, p99 []float64
	for range b.rounds {
		l, err := drive(ctx, b.one, inFlight, b.round)
		if err != nil {
			return nil, err
		}
		s := summary(l.latencies)
		p50, p99 = append(p50, s.P50), append(p99, s.P99)
	}
	return &latency{P50: bench.Median(p50), P99: bench.Median(p99)}, nil
}
