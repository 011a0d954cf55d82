// Command simulate simulates every built-in workload of rollouts under the scheduler and under static allocation, and
// one of a million rollouts. It prints a table and the medians, and fails if one of them misses its goal.
//
// Glossary. *Over the bound* is a makespan over the time that no schedule can beat, *simple* over a lower one: the work
// of full engines ÷ engines, or the longest rollout. *Static* and *asynchronous* are how many times as long static
// allocation takes, when its engines wait for the turns of all their rollouts before they run tool calls, as the papers
// describe it, and when they do not. *Worst case* is the same for the scheduler when it keeps room for the worst case
// of whole episodes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/simulate"
	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// result is what is written.
type result struct {
	Workloads []*simulate.Comparison `json:"workloads"`
	Ratio     float64                `json:"median_over_bound"`
	Simple    float64                `json:"median_over_simple_bound"`
	Static    float64                `json:"median_static"`
	Least     float64                `json:"least_static"`
	Async     float64                `json:"median_static_asynchronous"`
	Evictions int                    `json:"evictions"`
	Million   million                `json:"million"`
}

// million is the time of a large simulation.
type million struct {
	Rollouts int     `json:"rollouts"`
	Seconds  float64 `json:"processor_seconds"`
}

func main() { bench.Main("simulate", run) }

func run(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "simulate.json"), "file of the JSON result")
	only := flags.String("only", "", "workloads, separated by commas; all by default")
	rollouts := flags.Int("rollouts", 1_000_000, "rollouts of the large simulation; 0 leaves it out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names, err := bench.Choose("workload", *only, simulate.Presets())
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = simulate.Presets()
	}
	var r result
	if err := r.compare(names); err != nil {
		return err
	}
	r.summarise()
	if *rollouts > 0 {
		if err := r.large(*rollouts); err != nil {
			return err
		}
	}
	err = bench.Write(*out, r)
	if *only == "" { // the goals are those of all workloads
		err = errors.Join(err, r.missed())
	}
	return err
}

// The goals of the built-in workloads together, and of the large simulation.
const (
	mostRatio   = 1.10
	leastStatic = 1.3
	mostSeconds = 60
)

// missed is an error that names the goals that are missed.
func (r *result) missed() error {
	var all []error
	miss := func(missed bool, format string, args ...any) {
		if missed {
			all = append(all, fmt.Errorf("goal missed: "+format, args...))
		}
	}
	miss(r.Ratio > mostRatio, "the median over the bound is %.3f > %.2f", r.Ratio, mostRatio)
	miss(r.Static < leastStatic, "static allocation takes %.2f < %.1f times as long in the median", r.Static,
		leastStatic)
	miss(r.Least < 1, "static allocation takes %.2f < 1 times as long on one workload", r.Least)
	miss(r.Evictions > 0, "%d evictions", r.Evictions)
	miss(r.Million.Seconds > mostSeconds, "%d rollouts took %.0f s > %d", r.Million.Rollouts, r.Million.Seconds,
		mostSeconds)
	return errors.Join(all...)
}

// compare simulates the workloads and prints a line for each.
func (r *result) compare(names []string) error {
	fmt.Printf(
		"%-18s%8s%9s%9s%13s%16s%8s%7s%8s%14s%12s%20s\n",
		"workload",
		"engines",
		"rollouts",
		"bound s",
		"scheduler s",
		"over the bound",
		"simple",
		"idle",
		"static",
		"asynchronous",
		"worst case",
		"static's evictions",
	)
	for _, name := range names {
		job, err := drawn(name, 0)
		if err != nil {
			return err
		}
		c, err := simulate.Compare(name, job, simulate.Options{Settings: scheduler.Default()})
		if err != nil {
			return err
		}
		worst, err := simulate.Compare(name, job, simulate.Options{Alone: true,
			Settings: scheduler.Settings{Reserve: scheduler.Worst, Park: 1}})
		if err != nil {
			return err
		}
		r.Workloads = append(r.Workloads, c)
		r.Evictions += c.Dynamic.Evictions + worst.Dynamic.Evictions
		fmt.Printf("%-18s%8d%9d%9.0f%13.0f%16.2f%8.2f%6.0f%%%8.2f%14.2f%12.2f%20d\n", name, c.Engines, c.Rollouts,
			c.Bound.Seconds(), c.Dynamic.Makespan, c.Ratio(), c.SimpleRatio(), 100*c.Dynamic.Idle, c.Gain(),
			c.AsynchronousGain(),
			worst.Dynamic.Makespan/c.Dynamic.Makespan, c.Static.Evictions)
	}
	return nil
}

// drawn draws a built-in workload, with another number of rollouts if one is given.
func drawn(name string, rollouts int) (*simulate.Job, error) {
	text, _ := simulate.Preset(name)
	w, err := simulate.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if rollouts > 0 {
		w.Rollouts[0].Count = rollouts
	}
	return w.Draw()
}

func (r *result) summarise() {
	var ratio, simple, static, async []float64
	for _, c := range r.Workloads {
		simple = append(simple, c.SimpleRatio())
		ratio, static, async = append(ratio, c.Ratio()), append(static, c.Gain()), append(async, c.AsynchronousGain())
	}
	r.Ratio, r.Simple = bench.Median(ratio), bench.Median(simple)
	r.Static, r.Async, r.Least = bench.Median(static), bench.Median(async), slices.Min(static)
	fmt.Printf("\n%d workloads. Median over the bound: %.3f (goal: at most %.2f), over the simple bound: %.3f. Static "+
		"allocation takes %.2f times as long\nin the median (goal: at least %.1f) and %.2f times at least (goal: 1); "+
		"%.2f times in the median if its calls wait for no one.\nEvictions of the scheduler: %d (goal: 0).\n",
		len(r.Workloads), r.Ratio, mostRatio, r.Simple, r.Static, leastStatic, r.Least, r.Async, r.Evictions)
}

// large simulates many rollouts on 256 engines, on the time of one processor.
func (r *result) large(rollouts int) error {
	job, err := drawn("cluster-256", rollouts)
	if err != nil {
		return err
	}
	began, before := time.Now(), bench.ProcessorTime()
	c, err := simulate.Compare("cluster-256", job, simulate.Options{Settings: scheduler.Default(), Alone: true})
	if err != nil {
		return err
	}
	r.Million = million{Rollouts: rollouts, Seconds: (bench.ProcessorTime() - before).Seconds()}
	fmt.Printf(
		"%d rollouts on 256 engines: %.1f s of processor time (goal: at most 60), %.1f s by the clock; %.2f over the "+
			"bound\n",
		rollouts,
		r.Million.Seconds,
		time.Since(began).Seconds(),
		c.Ratio(),
	)
	return nil
}
