package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/policy"
)

// tokensFigures are the speed and the memory of updates, by size.
type tokensFigures struct {
	// PeakFlops is the rate to which MFU refers: dense bfloat16, from the maker's data sheet.
	PeakFlops float64        `json:"peak_flops,omitempty"`
	Sizes     []tokensOfSize `json:"sizes"`
}

type tokensOfSize struct {
	Size          string `json:"size"`
	Params        int64  `json:"params"`
	Row           int    `json:"row_tokens"`
	Microbatches  int    `json:"microbatches"`
	Checkpointing string `json:"checkpointing"`
	Pace          pace   `json:"pace"`
	// Packed is the speed with as many tokens in seven sequences of different lengths. It is measured at one size.
	Packed        *pace       `json:"packed,omitempty"`
	Peak          int64       `json:"peak_bytes,omitempty"`
	Estimate      plan.Memory `json:"estimate"`
	EstimateTotal int64       `json:"estimate_bytes"`
	// EstimateError is (estimate − peak) / peak.
	EstimateError float64 `json:"estimate_error,omitempty"`
	// Error says that the size did not fit the device.
	Error string `json:"error,omitempty"`
}

// tokens measures updates: tokens per second, MFU, and peak memory compared with the estimate.
func tokens(ctx context.Context, l *lab) (figures, error) {
	sizes, err := l.sizes("0.6B", "1.7B", "4B")
	if err != nil {
		return nil, err
	}
	out := &tokensFigures{PeakFlops: l.peakFlops()}
	for i, s := range sizes {
		// If the largest size trains with its activations kept, it is also measured with activations recomputed. Longer
		// sequences need this mode, and it remains if the first mode does not fit after all.
		modes := []string{l.checkpointing(s)}
		if modes[0] == "off" && s.name == "4B" {
			modes = append(modes, "on")
		}
		for k, mode := range modes {
			found, err := l.tokensOf(ctx, s, mode, i == 0)
			full := errors.Is(err, policy.ErrOutOfMemory)
			if full {
				found.Error = err.Error()
			}
			if err == nil || full {
				out.Sizes = append(out.Sizes, found)
			}
			if err != nil && !(full && k+1 < len(modes)) {
				return out, fmt.Errorf("%s, checkpointing %s: %w", s.name, mode, err)
			}
		}
	}
	return out, nil
}

func (l *lab) tokensOf(ctx context.Context, s size, checkpointing string, packed bool) (tokensOfSize, error) {
	out := tokensOfSize{
		Size: s.name, Params: s.model().Params, Row: s.row, Microbatches: s.micro, Checkpointing: checkpointing,
	}
	out.Estimate = s.model().UpdateMemory(
		plan.Settings{BFloat16: l.onGPU(), Checkpointing: checkpointing == "on", Tokens: s.row},
	)
	out.EstimateTotal = out.Estimate.Total()
	e, err := l.withEngine(ctx, settings{dtype: l.dtype(), checkpointing: checkpointing})
	if err != nil {
		return out, err
	}
	dir, err := l.model(s)
	if err != nil {
		return out, err
	}
	if err := e.Unload(ctx, policy.RolePolicy); err != nil { // the previous size
		return out, err
	}
	before := e.Usage().Peak
	if err := e.Load(ctx, policy.RolePolicy, dir, false); err != nil {
		return out, err
	}
	if out.Pace, err = l.timeUpdates(ctx, e, s); err != nil {
		return out, err
	}
	if l.onGPU() {
		// The engine reports the peak with its beats, once a second. It is the peak over the life of a process, so
		// sizes must be measured in ascending order.
		time.Sleep(1500 * time.Millisecond)
		if out.Peak = e.Usage().Peak; out.Peak <= before {
			return out, fmt.Errorf("the engine tells no peak of its memory: %d bytes after %d", out.Peak, before)
		}
		out.EstimateError = float64(out.EstimateTotal-out.Peak) / float64(out.Peak)
	}
	if packed {
		found, err := l.timeUpdates(ctx, e, s.packed())
		if err != nil {
			return out, fmt.Errorf("sequences of different lengths: %w", err)
		}
		out.Packed = &found
	}
	return out, nil
}

func (f *tokensFigures) rows() []row {
	var out []row
	for _, s := range f.Sizes {
		name := fmt.Sprintf("%s, %d × %d tokens, checkpointing %s", s.Size, s.Microbatches, s.Row, s.Checkpointing)
		if s.Error != "" {
			out = append(out, row{what: name, value: inCell(s.Error)})
			continue
		}
		out = append(out, row{what: name + ": update", value: fmt.Sprintf("%.0f tokens/s", s.Pace.TokensPerSecond)})
		if s.Packed != nil {
			out = append(out, row{what: name + ": the same in seven sequences", value: paceText(*s.Packed)})
		}
		if s.Pace.MFU > 0 {
			aim := ""
			if s.Size == "4B" {
				aim = "≥ 40%"
			}
			out = append(
				out, row{name + ": MFU", fmt.Sprintf("%.1f%% of %.0f TFLOP/s", 100*s.Pace.MFU, f.PeakFlops/1e12), aim},
			)
		}
		if s.Peak > 0 {
			out = append(
				out,
				row{
					name + ": memory",
					fmt.Sprintf("%s, estimated %s (%+.1f%%)", gib(s.Peak), gib(s.EstimateTotal), 100*s.EstimateError),
					"± 15%",
				},
			)
		}
	}
	return out
}

func gib(bytes int64) string { return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30)) }
