// Command view measures the page of `ropewalk view` on a run of 100,352 trajectories (196 steps of 64 groups of 8). Its
// record lies in a folder. The command measures how long it takes until the page shows trajectories and until it knows
// all of them, and how long a filter or an order takes: over HTTP, as the page asks, and in the page, in Chromium.
//
// Glossary. *First rows* is the time from the start of the viewer to the first trajectories, *all rows* the time to
// those of the whole run. Every round starts a new viewer; nothing is kept from the one before.
package main

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
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/bench"
)

// result holds medians in milliseconds, by what was measured.
type result struct {
	Trajectories int                `json:"trajectories"`
	Open         map[string]float64 `json:"open_ms"`
	Ask          map[string]float64 `json:"ask_ms"`
	Browser      map[string]float64 `json:"browser_ms,omitempty"`
	NoBrowser    string             `json:"no_browser,omitempty"` // why the page was not measured
}

func main() { bench.Main("view", run) }

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("view", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "view.json"), "file of the JSON result")
	rounds := flags.Int("rounds", 7, "measurements of each kind")
	steps := flags.Int("steps", 196, "steps of the run, of 512 trajectories each")
	record := flags.String("record", "", "folder that keeps the record for the next time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder := *record
	if folder == "" {
		if folder, err = os.MkdirTemp("", "ropewalk-bench-view-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	if err := makeRecord(folder, *steps); err != nil {
		return err
	}
	debug.SetGCPercent(view.GCPercent) // as the command does
	r := result{Trajectories: *steps * perStep}
	if r.Open, r.Ask, err = overHTTP(ctx, folder, *steps, *rounds); err != nil {
		return err
	}
	r.Browser, err = inBrowser(ctx, folder, r.Trajectories, *rounds)
	if bench.Skipped(err) {
		r.NoBrowser = err.Error()
	} else if err != nil {
		return err
	}
	print(r)
	return bench.Write(*out, r)
}

// print prints the medians, each kind in the order of its names.
func print(r result) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d trajectories\tms\t\n", r.Trajectories)
	for _, part := range []struct {
		name   string
		values map[string]float64
	}{{"open", r.Open}, {"ask", r.Ask}, {"page", r.Browser}} {
		for _, name := range slices.Sorted(maps.Keys(part.values)) {
			fmt.Fprintf(w, "%s: %s\t%.0f\t\n", part.name, name, part.values[name])
		}
	}
	w.Flush()
	if r.NoBrowser != "" {
		fmt.Println("the page was not measured:", r.NoBrowser)
	}
}
