package main

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// pace is how fast updates go.
type pace struct {
	TokensPerSecond float64 `json:"tokens_per_s"`
	MFU             float64 `json:"mfu,omitempty"`
	StepSeconds     float64 `json:"step_seconds"` // median, of all micro-batches and the optimiser's step
	Steps           int     `json:"steps"`
	FirstSeconds    float64 `json:"first_step_seconds"` // kernels are chosen and compiled in it
}

// paced makes a pace of the first step's seconds and those of the steps after it.
func (l *lab) paced(s size, first float64, steps []float64) pace {
	p := pace{StepSeconds: bench.Median(steps), Steps: len(steps), FirstSeconds: first}
	p.TokensPerSecond = float64(s.micro*s.row) / p.StepSeconds
	if peak := l.peakFlops(); peak > 0 {
		p.MFU = float64(s.micro) * s.model().TrainFlops(s.lengths()...) / p.StepSeconds / peak
	}
	return p
}

// enough says how many steps are timed: at least the given number, and for so long.
func (l *lab) enough() (steps int, least time.Duration) {
	if l.o.short {
		return 2, 0
	}
	return 5, 5 * time.Second
}

// timeUpdates takes optimiser steps on what the engine has loaded as policy.
func (l *lab) timeUpdates(ctx context.Context, e policy.Engine, s size) (pace, error) {
	step := func() (float64, error) {
		began := time.Now()
		err := oneStep(ctx, e, s, 1)
		return time.Since(began).Seconds(), err
	}
	first, err := step()
	if err != nil {
		return pace{}, err
	}
	most, least := l.enough()
	var steps []float64
	for began := time.Now(); len(steps) < most || time.Since(began) < least; {
		seconds, err := step()
		if err != nil {
			return pace{}, err
		}
		steps = append(steps, seconds)
	}
	return l.paced(s, first, steps), nil
}

// oneStep is one optimiser step of all its micro-batches, drawn by the seed.
func oneStep(ctx context.Context, e policy.Engine, s size, seed uint64) error {
	for i := range s.micro {
		if err := microbatch(ctx, e, s.microbatch(seed+uint64(i)<<32), s.micro*s.row); err != nil {
			return err
		}
	}
	_, err := e.Step(ctx, policy.RolePolicy, adamW)
	return err
}

// microbatch goes forward and backward over rows, of an optimiser step of n tokens.
func microbatch(ctx context.Context, e policy.Engine, rows [][]int32, n int) error {
	out, err := e.Forward(ctx, policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: rows, Temperature: 1, Outputs: policy.OutLogProb, Keep: true,
	})
	if err != nil {
		return err
	}
	return e.Backward(ctx, policy.RolePolicy, out.Kept, cotangents(rows, n))
}
