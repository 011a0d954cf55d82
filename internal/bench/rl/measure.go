package main

import (
	"runtime"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/loss/losstest"
)

// goRepeats is how many evaluations one measurement of ours spans: PyTorch takes several times as long.
const goRepeats = 8

// compare measures one loss on both sides in turn.
func compare(c losstest.Case, b losstest.Batch[float32], p *peer, rounds int) (row, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	once, tokens, err := losstest.Once(c, b, new(loss.Evaluator[float32]))
	if err != nil {
		return row{}, err
	}
	var ours, theirs []float64
	allocs := 0.0
	for range rounds {
		rate, made, err := measure(once, tokens)
		if err != nil {
			return row{}, err
		}
		ours, allocs = append(ours, rate), max(allocs, made)
		if p == nil {
			continue
		}
		seconds, err := p.measure(c, b)
		if err != nil {
			return row{}, err
		}
		theirs = append(theirs, float64(tokens)/seconds)
	}
	r := row{Go: bench.Median(ours), Allocs: allocs}
	if p != nil {
		r.Torch = bench.Median(theirs)
		r.Ratio = r.Go / r.Torch
	}
	return r, nil
}

// measure gives tokens per second and allocations per evaluation.
func measure(once func() error, tokens int64) (rate, allocs float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range goRepeats {
		if err := once(); err != nil {
			return 0, 0, err
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return goRepeats * float64(tokens) / took.Seconds(), float64((after.Mallocs - before.Mallocs) / goRepeats), nil
}

// scale is PPO's rate with two goroutines over that with one.
func scale(b losstest.Batch[float32], rounds int) (float64, error) {
	ppo := losstest.Cases()[0]
	one, tokens, err := losstest.Once(ppo, b, &loss.Evaluator[float32]{Workers: 1})
	if err != nil {
		return 0, err
	}
	two, _, err := losstest.Once(ppo, b, &loss.Evaluator[float32]{Workers: 2})
	if err != nil {
		return 0, err
	}
	var ratios []float64
	for range rounds {
		single, _, err := measure(one, tokens)
		if err != nil {
			return 0, err
		}
		double, _, err := measure(two, tokens)
		if err != nil {
			return 0, err
		}
		ratios = append(ratios, double/single)
	}
	return bench.Median(ratios), nil
}
