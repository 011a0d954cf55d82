// Command queues compares rollouts whose shards are spread over several task queues (rollout.queues) with static splits
// of the same shards. It simulates both: the spread by the code that decides in a run (package workflows/queues), with
// the time limits of a run. So the figures depend on no machine.
//
// Glossary. A *case* is a set of queues, whose workers differ in speed and may be lost, and a number of shards. The
// *makespan* is the time until the last shard has ended. An *equal* split gives every queue as many shards; a split *by
// speed* gives each as many as it can run in the same time, which only someone who knows all speeds beforehand can do.
// The *bound* is the work over all the workers that are there, or the longest shard on the fastest worker.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/internal/bench"
)

func main() { bench.Main("queues", run) }

// result is what both ways make of a case. Times are in seconds.
type result struct {
	Case     string  `json:"case"`
	Queues   int     `json:"queues"`
	Shards   int     `json:"shards"`
	Bound    float64 `json:"bound_seconds"`
	Spread   outcome `json:"spread"`
	Equal    float64 `json:"equal_split_seconds"`
	BySpeed  float64 `json:"split_by_speed_seconds"`
	Over     float64 `json:"over_the_bound"`
	GainFrom float64 `json:"equal_split_over_spread"`
	GainBest float64 `json:"split_by_speed_over_spread"`
}

func run(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("queues", flag.ContinueOnError)
	out := flags.String("out", ".ropewalk/bench/queues.json", "file for the JSON object")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var all []result
	for _, c := range cases() {
		r, err := compare(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		all = append(all, r)
	}
	print(os.Stdout, all)
	return bench.Write(*out, map[string]any{"cases": all})
}

// compare simulates a case in all ways.
func compare(c scenario) (result, error) {
	spread, err := spreadOut(c)
	if err != nil {
		return result{}, err
	}
	r := result{Case: c.name, Queues: len(c.queues), Shards: len(c.shards), Bound: bound(c), Spread: spread,
		Equal: split(c, equalShares(c)), BySpeed: split(c, sharesBySpeed(c))}
	r.Over, r.GainFrom, r.GainBest = spread.Makespan/r.Bound, r.Equal/spread.Makespan, r.BySpeed/spread.Makespan
	return r, nil
}

// print writes a table for people.
func print(to io.Writer, all []result) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "case\tqueues\tshards\tbound s\tspread s\tover the bound\tequal split\tby speed\tbegun again\t"+
		"tokens again")
	var over, gain, best []float64
	for _, r := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%d\t%.1f%%\n", r.Case, r.Queues, r.Shards, r.Bound,
			r.Spread.Makespan, r.Over, r.GainFrom, r.GainBest, r.Spread.Again, 100*r.Spread.Repeated)
		over, gain, best = append(over, r.Over), append(gain, r.GainFrom), append(best, r.GainBest)
	}
	_ = w.Flush() // an error of standard output is nothing that could be handled here
	fmt.Fprintf(to, "\nmedians: %.2f over the bound; an equal split takes %.2f times as long, one by speed %.2f\n",
		bench.Median(over), bench.Median(gain), bench.Median(best))
}
