package main

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

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
	step := bench.Side[float64]{Name: "update", Measure: func(ctx context.Context) (float64, error) {
		began := time.Now()
		err := oneStep(ctx, e, s, 1)
		return time.Since(began).Seconds(), err
	}}
	first, err := step.Measure(ctx)
	if err != nil {
		return pace{}, err
	}
	steps, err := bench.TakeTurns(ctx, bench.AtLeast(l.enough()), step)
	if err != nil {
		return pace{}, err
	}
	return l.paced(s, first, steps[0]), nil
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
