package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// taxFigures say what the protocol costs: the share of the time of Forward(keep) and Backward that is spent outside the
// models' own work.
type taxFigures struct {
	Size         string    `json:"size"`
	Tokens       int       `json:"microbatch_tokens"`
	Microbatch   float64   `json:"microbatch_seconds"` // median
	Median       float64   `json:"tax"`
	Microbatches []float64 `json:"tax_of_each"`
}

const (
	taxRepeats = 20
	taxLeast   = 0.1 // seconds of a micro-batch
)

// tax measures 20 micro-batches, made so large that one takes 100 ms.
func tax(ctx context.Context, l *lab) (figures, error) {
	s, err := l.smallest()
	if err != nil {
		return nil, err
	}
	e, err := l.withEngine(ctx, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return nil, err
	}
	dir, err := l.model(s)
	if err != nil {
		return nil, err
	}
	if err := e.Load(ctx, policy.RolePolicy, dir, false); err != nil {
		return nil, err
	}
	out := &taxFigures{Size: s.name}
	count, err := largeEnough(ctx, e, s)
	if err != nil {
		return nil, err
	}
	out.Tokens = count * s.row
	var seconds []float64
	for range taxRepeats {
		used, err := useOf(ctx, e, s, count)
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, used.Seconds)
		out.Microbatches = append(out.Microbatches, used.Tax())
	}
	out.Microbatch, out.Median = bench.Median(seconds), bench.Median(out.Microbatches)
	return out, nil
}

// largeEnough is how many rows a micro-batch needs to take 100 ms; the first ones also warm the device up.
func largeEnough(ctx context.Context, e *torch.Engine, s size) (int, error) {
	for count := 1; count <= 1024; count *= 2 {
		var seconds []float64
		for range 3 {
			used, err := useOf(ctx, e, s, count)
			if err != nil {
				return 0, err
			}
			seconds = append(seconds, used.Seconds)
		}
		if bench.Median(seconds) >= 1.2*taxLeast {
			return count, nil
		}
	}
	return 0, errors.New("no micro-batch takes 100 ms")
}

// useOf is what the two calls of a micro-batch of some rows use.
func useOf(ctx context.Context, e *torch.Engine, s size, count int) (torch.Usage, error) {
	before := e.Usage()
	if err := microbatch(ctx, e, s.randomRows(3, count, s.row), count*s.row); err != nil {
		return torch.Usage{}, err
	}
	used := e.Usage().Since(before)
	// So that gradients do not grow over the repetitions.
	return used, e.Discard(ctx, policy.RolePolicy)
}

func (f *taxFigures) rows() []row {
	return []row{
		{what: "micro-batch", value: fmt.Sprintf("%s, %d tokens, %.0f ms", f.Size, f.Tokens, 1000*f.Microbatch)},
		{"protocol tax, median of 20", fmt.Sprintf("%.2f%%", 100*f.Median), "≤ 2%"},
	}
}
