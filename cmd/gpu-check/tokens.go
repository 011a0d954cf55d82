package main

import (
	"context"
	"errors"
	"fmt"
	"math"
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
