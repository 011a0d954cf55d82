// Package rl measures the value, cotangents and statistics of every loss of package rl/loss, over 256 rows of 4,096
// tokens in float32. If it finds a Python with torch (ROPEWALK_PYTHON, else python3), it measures PyTorch's forward and
// backward of the same loss, with the same masks and statistics, in the same run. It runs from the repository's root.
//
// Glossary. *Tokens* are those under the mask. Both sides use one thread. They take turns, so that other load on the
// machine affects both. Rates are medians.
package rl

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/losstest"
)

// Case measures the losses.
var Case = bench.Case{Name: "rl", Doc: "the losses next to PyTorch", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	rounds := flags.Int("rounds", 7, "measurements of each side")
	rows := flags.Int("rows", 256, "rows of the batch")
	length := flags.Int("length", 4096, "tokens of a row")
	return func(ctx context.Context, r *bench.Report) error {
		batch := losstest.New[float32](rand.New(rand.NewPCG(1, 2)), *rows, *length, losstest.Spread{Drift: 0.1})
		p, err := startPeer(ctx, batch)
		if err != nil {
			r.Note("without PyTorch to compare with", "%v", err)
		}
		defer p.stop()
		for _, c := range losstest.Cases() {
			found, err := compare(ctx, c, batch, p, *rounds)
			if err != nil {
				return fmt.Errorf("measure %s: %w", c.Name, err)
			}
			r.Add(c.Name, found...)
		}
		scaling, err := scale(ctx, batch, *rounds)
		r.Add("PPO on two cores", bench.Of("rate ÷ that on one", scaling))
		return err
	}
}
