package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/work"
)

const (
	taxRepeats = 20
	taxLeast   = 0.1  // seconds of a micro-batch
	mostTax    = 0.02 // of its time
)

// tax measures the cost of the protocol: the share of the time of Forward(keep) and Backward that is spent outside the
// models' own work, over micro-batches so large that one takes 100 ms.
func tax(ctx context.Context, l *lab, r *bench.Report) error {
	s, err := l.smallest()
	if err != nil {
		return err
	}
	e, err := l.loaded(ctx, s, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return err
	}
	count, err := largeEnough(ctx, e, s)
	if err != nil {
		return err
	}
	costs, err := bench.TakeTurns(ctx, bench.Rounds(taxRepeats), taxed(e, s, count))
	if err != nil {
		return err
	}
	r.Add(fmt.Sprintf("%s, micro-batch of %d tokens", s.name, count*s.row),
		bench.Of("ms", 1000*bench.Median(bench.Column(costs[0], seconds))),
		bench.Of("share outside the models", bench.Median(bench.Column(costs[0], work.Cost.Tax))).AtMost(mostTax))
	return nil
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
