package rl

import (
	"context"
	"runtime"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// goRepeats is the number of evaluations in one of our measurements: PyTorch takes several times as long.
const goRepeats = 8

// compare measures one loss on both sides in turn, and only on ours without a peer.
func compare(ctx context.Context, c losstest.Case, b losstest.Batch[float32], p *peer, rounds int) (
	out []bench.Figure, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	once, tokens, err := losstest.Once(c, b, new(loss.Evaluator[float32]))
	if err != nil {
		return nil, err
	}
	sides := []bench.Side[float64]{side("Go", once, tokens)}
	if p != nil {
		sides = append(sides, bench.Side[float64]{Name: "PyTorch", Measure: func(ctx context.Context) (float64, error) {
			seconds, err := p.measure(ctx, c, b)
			return float64(tokens) / seconds, err
		}})
	}
	found, err := bench.TakeTurns(ctx, bench.Rounds(rounds), sides...)
	if err != nil {
		return nil, err
	}
	ours := bench.Median(found[0])
	out = []bench.Figure{bench.Of("Go tok/s", ours)}
	if p != nil {
		theirs := bench.Median(found[1])
		out = append(out, bench.Of("PyTorch tok/s", theirs), bench.Of("Go ÷ PyTorch", ours/theirs))
	}
	return out, nil
}

// side is one that evaluates a loss in this process, several times in a measurement. It measures tokens per second.
func side(name string, once func() error, tokens int64) bench.Side[float64] {
	return bench.Side[float64]{Name: name, Measure: func(context.Context) (float64, error) {
		began := time.Now()
		for range goRepeats {
			if err := once(); err != nil {
				return 0, err
			}
		}
		return goRepeats * float64(tokens) / time.Since(began).Seconds(), nil
	}}
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
	return bench.Ratio(found[1], found[0]), nil
}
