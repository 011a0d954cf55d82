package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/policy"
)

// againstFigures compares updates of the engine with those of the plain loop.
type againstFigures struct {
	Sizes []againstSize `json:"sizes"`
}

type againstSize struct {
	Size          string `json:"size"`
	Checkpointing string `json:"checkpointing"`
	Engine        pace   `json:"engine"`
	// Loops are the plain loops. autocast trains float32 weights under torch.autocast, masters trains a bfloat16 model
	// with float32 masters, and float32 uses neither.
	Loops []loopPace `json:"loops"`
	// Ratio is the engine's tokens per second over those of the faster loop; 0 if no loop ran.
	Ratio float64 `json:"ratio,omitempty"`
}

type loopPace struct {
	Loop  string `json:"loop"`
	Pace  *pace  `json:"pace,omitempty"`
	Peak  int64  `json:"peak_bytes,omitempty"`
	Error string `json:"error,omitempty"`
}

// against measures the engine and the plain loop one after the other at each size.
func against(ctx context.Context, l *lab) (figures, error) {
	sizes, err := l.sizes("0.6B", "1.7B", "4B")
	if err != nil {
		return nil, err
	}
	out := &againstFigures{}
	for _, s := range sizes {
		found, err := l.againstOf(ctx, s)
		if len(found.Loops) > 0 {
			out.Sizes = append(out.Sizes, found)
		}
		if err != nil {
			return out, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return out, nil
}

func (l *lab) againstOf(ctx context.Context, s size) (againstSize, error) {
	// Both sides recompute activations, because otherwise the plain loop of the largest size does not fit the device.
	out := againstSize{Size: s.name, Checkpointing: "on"}
	e, err := l.withEngine(ctx, settings{dtype: l.dtype(), checkpointing: out.Checkpointing})
	if err != nil {
		return out, err
	}
	dir, err := l.model(s)
	if err != nil {
		return out, err
	}
	if err := e.Load(ctx, policy.RolePolicy, dir, false); err != nil {
		return out, err
	}
	if out.Engine, err = l.timeUpdates(ctx, e, s); err != nil {
		return out, err
	}
	if err := e.Unload(ctx, policy.RolePolicy); err != nil { // the peer needs the memory
		return out, err
	}
	for _, loop := range l.loops() {
		found, err := l.runLoop(ctx, s, loop, out.Checkpointing == "on")
		if err != nil && !errors.Is(err, errPeerMemory) {
			return out, err
		}
		out.Loops = append(out.Loops, found)
	}
	best := 0.0
	for _, x := range out.Loops {
		if x.Pace != nil {
			best = max(best, x.Pace.TokensPerSecond)
		}
	}
	if best > 0 {
		out.Ratio = out.Engine.TokensPerSecond / best
	}
	return out, nil
}

func (l *lab) loops() []string {
	if l.onGPU() {
		return []string{"autocast", "masters"}
	}
	return []string{"float32"}
}

func (l *lab) runLoop(ctx context.Context, s size, loop string, checkpointing bool) (loopPace, error) {
	steps, least := l.enough()
	var a trained
	err := l.ask(ctx, trainJob{
		Job: "train", Shape: s.shape, Row: s.row, Microbatches: s.micro, Checkpointing: checkpointing, Loop: loop,
		Steps: steps, Seconds: least.Seconds(),
	}, &a)
	if err == nil {
		err = failure(a.Error)
	}
	out := loopPace{Loop: loop, Peak: a.Peak}
	if err != nil {
		out.Error = err.Error()
		return out, err
	}
	out.Pace = new(l.paced(s, a.First, a.Steps))
	return out, nil
}

func (f *againstFigures) rows() []row {
	var out []row
	for _, s := range f.Sizes {
		name := fmt.Sprintf("%s, checkpointing %s", s.Size, s.Checkpointing)
		out = append(out, row{what: name + ": engine", value: paceText(s.Engine)})
		for _, x := range s.Loops {
			value := x.Error
			if x.Pace != nil {
				value = paceText(*x.Pace)
			}
			out = append(out, row{what: name + ": plain loop, " + x.Loop, value: value})
		}
		if s.Ratio > 0 {
			out = append(out, row{name + ": engine over the faster loop", fmt.Sprintf("%.2f ×", s.Ratio), "≥ 1 ×"})
		}
	}
	return out
}

func paceText(p pace) string {
	if p.MFU > 0 {
		return fmt.Sprintf("%.0f tokens/s, MFU %.1f%%", p.TokensPerSecond, 100*p.MFU)
	}
	return fmt.Sprintf("%.0f tokens/s", p.TokensPerSecond)
}
