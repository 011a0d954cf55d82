package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// against measures updates of the engine and of the plain loop, one after the other at each size. Both sides recompute
// activations, because otherwise the plain loop of the largest size does not fit the device.
func against(ctx context.Context, l *lab, r *bench.Report) error {
	sizes, err := l.sizes("0.6B", "1.7B", "4B")
	if err != nil {
		return err
	}
	for _, s := range sizes {
		if err := l.againstOf(ctx, r, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (l *lab) againstOf(ctx context.Context, r *bench.Report, s size) error {
	e, err := l.loaded(ctx, s, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return err
	}
	ours, err := l.timeUpdates(ctx, e, s)
	if err != nil {
		return err
	}
	if err := e.Unload(ctx, policy.RolePolicy); err != nil { // the peer needs the memory
		return err
	}
	r.Add(s.name+": engine", ours.figures()...)
	best := 0.0
	for _, loop := range l.loops() {
		name := fmt.Sprintf("%s: plain loop, %s", s.name, loop)
		found, err := l.runLoop(ctx, s, loop)
		if errors.Is(err, errPeerMemory) {
			r.Note(name, "%v", err)
			continue
		}
		if err != nil {
			return err
		}
		r.Add(name, found.figures()...)
		best = max(best, found.tokens)
	}
	if best > 0 {
		r.Add(s.name+": engine ÷ the faster loop", bench.Of("ratio", ours.tokens/best).AtLeast(1))
	}
	return nil
}

// loops are the plain loops. autocast trains float32 weights under torch.autocast, masters trains a bfloat16 model with
// float32 masters, and float32 uses neither.
func (l *lab) loops() []string {
	if l.onGPU() {
		return []string{"autocast", "masters"}
	}
	return []string{"float32"}
}

func (l *lab) runLoop(ctx context.Context, s size, loop string) (pace, error) {
	steps, least := l.enough()
	var a trained
	err := l.ask(ctx, trainJob{
		Job: "train", Shape: s.shape, Row: s.row, Microbatches: s.micro, Checkpointing: true, Loop: loop,
		Steps: steps, Seconds: least.Seconds(),
	}, &a)
	if err == nil {
		err = failure(a.Error)
	}
	if err != nil {
		return pace{}, err
	}
	return l.paced(s, a.First, a.Steps), nil
}
