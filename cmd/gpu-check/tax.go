package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/work"
	"github.com/ropewalk/ropewalk/policy"
)

// taxFigures are the cost of the protocol: the share of the time of Forward(keep) and Backward that is spent outside
// the models' own work.
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
	costs, err := bench.TakeTurns(ctx, bench.Rounds(taxRepeats), taxed(e, s, count))
	if err != nil {
		return nil, err
	}
	out.Microbatches = bench.Column(costs[0], work.Cost.Tax)
	out.Microbatch, out.Median = bench.Median(bench.Column(costs[0], seconds)), bench.Median(out.Microbatches)
	return out, nil
}

// largeEnough is how many rows a micro-batch needs to take 100 ms. The first ones also warm the device up.
func largeEnough(ctx context.Context, e *torch.Engine, s size) (int, error) {
	for count := 1; count <= 1024; count *= 2 {
		costs, err := bench.TakeTurns(ctx, bench.Rounds(3), taxed(e, s, count))
		if err != nil {
			return 0, err
		}
		if bench.Median(bench.Column(costs[0], seconds)) >= 1.2*taxLeast {
			return count, nil
		}
	}
	return 0, errors.New("no micro-batch takes 100 ms")
}

// taxed measures micro-batches of some rows.
func taxed(e *torch.Engine, s size, count int) bench.Side[work.Cost] {
	rows := s.randomRows(3, count, s.row)
	batch := work.MicroBatch{Rows: rows, Cotangents: work.LanguageModelling(rows, count*s.row)}
	return bench.Side[work.Cost]{Name: "micro-batch", Measure: func(ctx context.Context) (work.Cost, error) {
		return batch.Measure(ctx, e)
	}}
}

func seconds(c work.Cost) float64 { return c.Seconds }

func (f *taxFigures) rows() []row {
	return []row{
		{what: "micro-batch", value: fmt.Sprintf("%s, %d tokens, %.0f ms", f.Size, f.Tokens, 1000*f.Microbatch)},
		{"protocol tax, median of 20", fmt.Sprintf("%.2f%%", 100*f.Median), "≤ 2%"},
	}
}
