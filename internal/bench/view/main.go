// Package view measures the page of `ropewalk view` on a run of 100,352 trajectories (196 steps of 64 groups of 8). Its
// record lies in a folder. It measures how long it takes until the page shows trajectories and until it knows all of
// them, and how long a filter or an order takes: over HTTP, as the page asks, and in the page, in Chromium. Figures are
// medians in milliseconds.
//
// Glossary. *First rows* is the time from the start of the viewer to the first trajectories, *all rows* the time to
// those of the whole run. Every round starts a new viewer; nothing is kept from the one before.
package view

import (
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"runtime/debug"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/bench"
)

// Case measures the page.
var Case = bench.Case{Name: "view", Doc: "the page of a large run", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	rounds := flags.Int("rounds", 7, "measurements of each kind")
	steps := flags.Int("steps", 196, "steps of the run, of 512 trajectories each")
	return func(ctx context.Context, r *bench.Report) (err error) {
		folder, err := os.MkdirTemp("", "ropewalk-bench-view-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		if err := makeRecord(folder, *steps); err != nil {
			return err
		}
		debug.SetGCPercent(view.GCPercent) // as the command does
		found := map[string][]float64{}
		for range *rounds {
			if err := overHTTP(ctx, folder, *steps, found); err != nil {
				return err
			}
		}
		err = inBrowser(ctx, folder, *steps*perStep, *rounds, found)
		for _, name := range slices.Sorted(maps.Keys(found)) {
			r.Add(name, bench.Of("ms", bench.Median(found[name])))
		}
		if bench.Skipped(err) {
			r.Note("the page was not measured", "%v", err)
			return nil
		}
		return err
	}
}
