package rl

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// goRepeats is the number of evaluations in one of our measurements: PyTorch takes several times as long.
const goRepeats = 8

// speed is one measurement of a side.
type speed struct{ rate, allocs float64 } // tokens per second, allocations per evaluation

// compare measures one loss on both sides in turn, and only on ours without a peer.
func compare(ctx context.Context, c losstest.Case, b losstest.Batch[float32], p *peer, rounds int) (
	out []bench.Figure, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	once, tokens, err := losstest.Once(c, b, new(loss.Evaluator[float32]))
	if err != nil {
		return nil, err
	}
	sides := []bench.Side[speed]{side("Go", once, tokens)}
	if p != nil {
		sides = append(sides, bench.Side[speed]{Name: "PyTorch", Measure: func(ctx context.Context) (speed, error) {
			seconds, err := p.measure(ctx, c, b)
			return speed{rate: float64(tokens) / seconds}, err
		}})
	}
	found, err := bench.TakeTurns(ctx, bench.Rounds(rounds), sides...)
	if err != nil {
		return nil, err
	}
	ours := bench.Median(bench.Column(found[0], rate))
	out = []bench.Figure{bench.Of("Go tok/s", ours)}
	if p != nil {
		theirs := bench.Median(bench.Column(found[1], rate))
		out = append(out, bench.Of("PyTorch tok/s", theirs), bench.Of("Go ÷ PyTorch", ours/theirs))
	}
	allocs := slices.Max(bench.Column(found[0], func(s speed) float64 { return s.allocs }))
	return append(out, bench.Of("allocations", allocs)), nil
}

func rate(s speed) float64 { return s.rate }

// side is one that evaluates a loss in this process.
func side(name string, once func() error, tokens int64) bench.Side[speed] {
	return bench.Side[speed]{Name: name, Measure: func(context.Context) (speed, error) { return measure(once, tokens) }}
}

// measure evaluates a loss several times.
func measure(once func() error, tokens int64) (speed, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range goRepeats {
		if err := once(); err != nil {
			return speed{}, err
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return speed{
		rate:   goRepeats * float64(tokens) / took.Seconds(),
		allocs: float64((after.Mallocs - before.Mallocs) / goRepeats),
	}, nil
}

// scale is PPO's rate with two goroutines over that with one.
func scale(ctx context.Context, b losstest.Batch[float32], rounds int) (float64, error) {
	ppo := losstest.Cases()[0]
	one, tokens, err := losstest.Once(ppo, b, &loss.Evaluator[float32]{Workers: 1})
	if err != nil {
		return 0, err
	}
	two, _, err := losstest.Once(ppo, b, &loss.Evaluator[float32]{Workers: 2})
	if err != nil {
		return 0, err
	}
	found, err := bench.TakeTurns(ctx, bench.Rounds(rounds), side("one worker", one, tokens),
		side("two workers", two, tokens))
	if err != nil {
		return 0, err
	}
	return bench.Ratio(bench.Column(found[1], rate), bench.Column(found[0], rate)), nil
}
