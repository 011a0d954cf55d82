package main

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// pace is the speed of updates.
type pace struct {
	TokensPerSecond float64 `json:"tokens_per_s"`
	MFU             float64 `json:"mfu,omitempty"`
	StepSeconds     float64 `json:"step_seconds"` // median, of all micro-batches and the optimiser's step
	Steps           int     `json:"steps"`
	FirstSeconds    float64 `json:"first_step_seconds"` // kernels are chosen and compiled in it
}

// paced makes a pace from the seconds of the first step and of the further steps.
func (l *lab) paced(s size, first float64, steps []float64) pace {
	p := pace{StepSeconds: bench.Median(steps), Steps: len(steps), FirstSeconds: first}
	p.TokensPerSecond = float64(s.micro*s.row) / p.StepSeconds
	if peak := l.peakFlops(); peak > 0 {
		p.MFU = float64(s.micro) * s.model().TrainFlops(s.lengths()...) / p.StepSeconds / peak
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
