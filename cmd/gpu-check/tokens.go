package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// The goals of updates on a GPU.
const (
	leastMFU          = 0.4  // of the largest size
	mostEstimateError = 0.15 // of the estimate of memory, relative to the peak
)

// tokens measures updates: tokens per second, MFU, and peak memory compared with the estimate.
func tokens(ctx context.Context, l *lab, r *bench.Report) error {
	sizes, err := l.sizes("0.6B", "1.7B", "4B")
	if err != nil {
		return err
	}
	for i, s := range sizes {
		// If the largest size trains with its activations kept, it is also measured with activations recomputed. Longer
		// sequences need this mode, and it remains if the first mode does not fit after all.
		modes := []string{l.checkpointing(s)}
		if modes[0] == "off" && s.name == "4B" {
			modes = append(modes, "on")
		}
		for k, mode := range modes {
			err := l.tokensOf(ctx, r, s, mode, i == 0)
			full := errors.Is(err, policy.ErrOutOfMemory)
			if full {
				r.Note(s.work(mode), "%v", err)
			}
			if err != nil && !(full && k+1 < len(modes)) {
				return fmt.Errorf("%s, checkpointing %s: %w", s.name, mode, err)
			}
		}
	}
	return nil
}

// work is what an update of the size does, for people.
func (s size) work(checkpointing string) string {
	return fmt.Sprintf("%s, %d × %d tokens, checkpointing %s", s.name, s.micro, s.row, checkpointing)
}

func (l *lab) tokensOf(ctx context.Context, r *bench.Report, s size, checkpointing string, packed bool) error {
	estimate := s.model().UpdateMemory(
		plan.Settings{States: 2, BFloat16: l.onGPU(), Checkpointing: checkpointing == "on", Tokens: s.row},
	).Total()
	e, err := l.withEngine(ctx, settings{dtype: l.dtype(), checkpointing: checkpointing})
	if err != nil {
		return err
	}
	if err := e.Unload(ctx, policy.RolePolicy); err != nil { // the previous size
		return err
	}
	before := e.Usage().Peak
	if err := l.load(ctx, e, s, false); err != nil {
		return err
	}
	p, err := l.timeUpdates(ctx, e, s)
	if err != nil {
		return err
	}
	figures := p.figures()
	if s.name == "4B" && p.mfu > 0 {
		figures[1] = figures[1].AtLeast(leastMFU)
	}
	if l.onGPU() {
		peak, err := peakAfter(e, before)
		if err != nil {
			return err
		}
		figures = append(figures, bench.Of("GiB", gib(peak)), bench.Of("estimated", gib(estimate)),
			bench.Of("error", math.Abs(float64(estimate-peak))/float64(peak)).AtMost(mostEstimateError))
	}
	r.Add(s.work(checkpointing), figures...)
	if packed {
		found, err := l.timeUpdates(ctx, e, s.packed())
		if err != nil {
			return fmt.Errorf("sequences of different lengths: %w", err)
		}
		r.Add("the same in seven sequences", found.figures()...)
	}
	return nil
}

// peakAfter waits for an engine's greatest memory on a GPU, which must be above that of before: the engine reports it
// with its beats, once a second. It is the peak over the life of a process, so sizes are measured in ascending order.
func peakAfter(e *torch.Engine, before int64) (int64, error) {
	time.Sleep(1500 * time.Millisecond)
	peak := e.Usage().Peak
	if peak <= before {
		return 0, fmt.Errorf("the engine tells no peak of its memory: %d bytes after %d", peak, before)
	}
	return peak, nil
}

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }

// pace is the speed of updates.
type pace struct {
	tokens, mfu float64 // tokens a second; mfu is 0 if the device's peak is unknown
	step, first float64 // seconds of a step (median) and of the first one, in which kernels are chosen and compiled
}

// figures are the pace's, tokens a second first.
func (p pace) figures() []bench.Figure {
	out := []bench.Figure{bench.Of("tokens/s", p.tokens)}
	if p.mfu > 0 {
		out = append(out, bench.Of("MFU", p.mfu))
	}
	return append(out, bench.Of("s a step", p.step), bench.Of("s of the first", p.first))
}

// paced makes a pace from the seconds of the first step and of the further steps.
func (l *lab) paced(s size, first float64, steps []float64) pace {
	p := pace{step: bench.Median(steps), first: first}
	p.tokens = float64(s.micro*s.row) / p.step
	if peak := l.peakFlops(); peak > 0 {
		p.mfu = float64(s.micro) * s.model().TrainFlops(s.lengths()...) / p.step / peak
	}
	return p
}

// enough returns how many steps are timed at least, and for how long at least.
func (l *lab) enough() (steps int, least time.Duration) {
	if l.o.short {
		return 2, 0
	}
	return 5, 5 * time.Second
}

// timeUpdates takes optimiser steps on the resident policy.
func (l *lab) timeUpdates(ctx context.Context, e policy.Engine, s size) (pace, error) {
	n, least := l.enough()
	first, steps, err := timed(ctx, "update", n, least, func() error { return oneStep(ctx, e, s, 1) })
	if err != nil {
		return pace{}, err
	}
	return l.paced(s, first, steps), nil
}

// timed returns the seconds of a first run, and of at least n further runs that also fill a time.
func timed(ctx context.Context, what string, n int, least time.Duration, once func() error) (
	first float64, further []float64, err error) {
	run := bench.Side[float64]{Name: what, Measure: func(context.Context) (float64, error) {
		began := time.Now()
		err := once()
		return time.Since(began).Seconds(), err
	}}
	if first, err = run.Measure(ctx); err != nil {
		return 0, nil, err
	}
	all, err := bench.TakeTurns(ctx, bench.AtLeast(n, least), run)
	return first, slices.Concat(all...), err
}

// oneStep takes one optimiser step over all micro-batches, drawn by the seed.
func oneStep(ctx context.Context, e policy.Engine, s size, seed uint64) error {
	for i := range s.micro {
		if err := s.microbatch(seed+uint64(i)<<32).Run(ctx, e); err != nil {
			return err
		}
	}
	_, err := e.Step(ctx, policy.RolePolicy, adamW)
	return err
}
