package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// side is one way of running calls; measure gives calls per second over about the given time.
type side struct {
	name     string
	isolated bool
	measure  func(ctx context.Context, least time.Duration) (float64, error)
	close    func() error
}

// Sides that are not peers.
const (
	ours     = "sandbox"
	theLimit = "limit"
)

// speed measures throughput: ours, the limit and every peer in turn, round after round.
func (b *benchmark) speed(ctx context.Context) error {
	sides := []side{b.ours()}
	others := append([]peer{{theLimit, b.startLimit}}, b.peers()...)
	for _, p := range others {
		s, err := p.open(ctx)
		if err == nil {
			sides = append(sides, s)
		} else if p.name == theLimit {
			b.result.lack(err, "limit_calls_per_s")
		} else {
			b.result.lack(err, "peers."+p.name)
		}
	}
	defer func() {
		for _, s := range sides {
			_ = s.close()
		}
	}()
	rates, err := interleave(ctx, sides, b.rounds, b.round)
	if err != nil {
		return err
	}
	b.result.rates(sides, rates)
	return nil
}

func (b *benchmark) ours() side {
	return side{name: ours, isolated: true, close: func() error { return nil }, measure: func(ctx context.Context, least time.Duration) (float64, error) {
		l, err := drive(ctx, b.batch, 2, least) // two, so that one batch's end leaves no worker idle
		return batchSize * l.perSecond(), err
	}}
}

// interleave returns each side's rates, a round each, after a short warm-up.
func interleave(ctx context.Context, sides []side, rounds int, round time.Duration) (map[string][]float64, error) {
	rates := map[string][]float64{}
	for _, s := range sides {
		if _, err := s.measure(ctx, round/10); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for range rounds {
		for _, s := range sides {
			rate, err := s.measure(ctx, round)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			rates[s.name] = append(rates[s.name], rate)
		}
	}
	return rates, nil
}

// rates puts the sides' medians, and the medians of the rounds' ratios, into the result.
func (r *result) rates(sides []side, rates map[string][]float64) {
	r.Stateless = pointer(bench.Median(rates[ours]))
	if limit := rates[theLimit]; limit != nil {
		r.Limit = pointer(bench.Median(limit))
		r.LimitRatio = pointer(bench.Median(ratios(rates[ours], limit)))
	}
	r.Peers = map[string]float64{}
	fastest := ""
	for _, s := range sides {
		if s.name == ours || s.name == theLimit {
			continue
		}
		r.Peers[s.name] = bench.Median(rates[s.name])
		if s.isolated && (fastest == "" || r.Peers[s.name] > r.Peers[fastest]) {
			fastest = s.name
		}
	}
	if fastest != "" {
		r.PeerRatio = pointer(bench.Median(ratios(rates[ours], rates[fastest])))
	}
}

// ratios divides two sides round by round.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

func pointer(x float64) *float64 { return &x }

// sorted are a map's keys in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
