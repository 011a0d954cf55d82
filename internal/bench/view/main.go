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
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// Case measures the page.
var Case = bench.Case{Name: "view", Doc: "the page of a large run", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	rounds := flags.Int("rounds", 7, "measurements of each kind")
	steps := flags.Int("steps", 196, "steps of the run, of 512 trajectories each")
	return func(ctx context.Context, r *bench.Report) error {
		folder := filepath.Join(r.Dir, "record")
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
		err := inBrowser(ctx, r.Dir, folder, *steps*perStep, *rounds, found)
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

// The run and the trajectories of one of its steps.
const (
	runName         = "large"
	groups, samples = 64, 8
	perStep         = groups * samples
)

// makeRecord commits the run into a folder.
func makeRecord(folder string, steps int) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			err = failed.error
		default:
			panic(failed)
		}
	}()
	fmt.Fprintln(os.Stderr, "making the record…")
	objects := mem.New()
	recordtest.Large(maker{}, objects, recordtest.LargeOptions{Run: runName, Steps: steps, Groups: groups,
		Samples: samples, Shards: 2, EvaluateEvery: 20, Problems: 513, Seed: 1})
	recordtest.Unpack(maker{}, objects, folder)
	return nil
}

// maker lets the makers of records for tests run outside a test.
type maker struct{ testing.TB }

// failure is what maker panics with.
type failure struct{ error }

// Helper implements testing.TB.
func (maker) Helper() {}

// Errorf implements testing.TB.
func (maker) Errorf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// FailNow implements testing.TB.
func (maker) FailNow() { panic(failure{errors.New("the record could not be made")}) }
