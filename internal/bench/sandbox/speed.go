package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// side is one way of running calls. measure returns calls per second over about the given time.
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
			b.result.lack(err.Error(), "limit_calls_per_s")
		} else {
			b.result.lack(err.Error(), "peers."+p.name)
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
	return side{name: ours, isolated: true, close: func() error { return nil },
		measure: func(ctx context.Context, least time.Duration) (float64, error) {
			l, err := drive(ctx, b.batch, 2, least) // two batches, so that no worker is idle at the end of one
			return batchSize * l.perSecond(), err
		}}
}

// interleave returns each side's rates, one per round, after a short warm-up.
func interleave(ctx context.Context, sides []side, rounds int, round time.Duration) (map[string][]float64, error) {
	lasting := func(least time.Duration) (all []bench.Side[float64]) {
		for _, s := range sides {
			all = append(all, bench.Side[float64]{Name: s.name, Measure: func(ctx context.Context) (float64, error) {
				return s.measure(ctx, least)
			}})
		}
		return all
	}
	if _, err := bench.TakeTurns(ctx, bench.Rounds(1), lasting(round/10)...); err != nil {
		return nil, err
	}
	found, err := bench.TakeTurns(ctx, bench.Rounds(rounds), lasting(round)...)
	if err != nil {
		return nil, err
	}
	rates := map[string][]float64{}
	for i, s := range sides {
		rates[s.name] = found[i]
	}
	return rates, nil
}

// rates adds the sides' medians, and the medians of the rounds' ratios, to the result.
func (r *result) rates(sides []side, rates map[string][]float64) {
	r.Stateless = pointer(bench.Median(rates[ours]))
	if limit := rates[theLimit]; limit != nil {
		r.Limit = pointer(bench.Median(limit))
		r.LimitRatio = pointer(bench.Ratio(rates[ours], limit))
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
		r.PeerRatio = pointer(bench.Ratio(rates[ours], rates[fastest]))
	}
}

func pointer(x float64) *float64 { return &x }

// sorted returns a map's keys in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
