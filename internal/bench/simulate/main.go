// Command simulate simulates workloads of rollouts under the rollout scheduler (rl/scheduler) and under the static
// allocation that it replaces. It prints a table and the medians, and fails if one of them misses its goal. It is a
// discrete-event simulation: every turn, tool call, failure and decision is an event, and what happens between events
// follows from a formula. Nothing but the processor's time of the last line depends on the machine.
//
// Glossary. A *workload* is engines, rollouts and failures. A *rollout* is one episode with the lengths that it turns
// out to have; no scheduler is told them before. A *model* says how fast an engine is. An engine's *rows* are the turns
// that it decodes at once. The *makespan* is the time from the start to the last answer. The *bound* is a time that no
// schedule can beat. *Static* and *asynchronous* are how many times as long static allocation takes, when its engines
// wait for the turns of all their rollouts before they run tool calls, as the paper describes it, and when they do not.
// *Worst case* is the same for the scheduler when it keeps room for the worst case of whole episodes.
//
// One decode step gives every row one token and takes base + row · (rows) + context · (tokens that the rows' caches
// hold) seconds: reading the weights, the arithmetic of each row, and reading the caches. A prefix, or the part of it
// that is not cached, is computed at a constant rate, before the engine decodes on. What running rows do not use of the
// cache keeps the prefixes of episodes that wait for their tools, the oldest of which are dropped first.
//
// Assumed are: no cost of scheduling in the engine, no noise, no speculative decoding, no queue for tools; the prompt
// that a group shares is computed for each of its rollouts, by every schedule; an engine that drops a running row keeps
// its text; an engine that is lost loses the turns in progress.
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
	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// result is what is written.
type result struct {
	Workloads []comparison `json:"workloads"`
	Ratio     float64      `json:"median_over_bound"`
	Static    float64      `json:"median_static"`
	Least     float64      `json:"least_static"`
	Async     float64      `json:"median_static_asynchronous"`
	Evictions int          `json:"evictions"`
	Million   million      `json:"million"`
}

// comparison is a workload under the scheduler and under static allocation.
type comparison struct {
	Workload     string   `json:"workload"`
	Engines      int      `json:"engines"`
	Rollouts     int      `json:"rollouts"`
	Bound        float64  `json:"bound_seconds"`
	Scheduler    *outcome `json:"scheduler"`
	Worst        *outcome `json:"scheduler_worst_case"`
	Static       *outcome `json:"static"`
	Asynchronous *outcome `json:"static_asynchronous"`
}

// over is how many times as long as the bound the scheduler takes.
func (c comparison) over() float64 { return c.Scheduler.Makespan / c.Bound }

// times is how many times as long as the scheduler another way takes.
func (c comparison) times(other *outcome) float64 { return other.Makespan / c.Scheduler.Makespan }

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
	var all []string
	for _, w := range workloads {
		all = append(all, w.name)
	}
	names, err := bench.Choose("workload", *only, all)
	if err != nil {
		return err
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

// The goals of the workloads together, and of the large simulation.
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

// compare simulates the workloads that are named, or all, and prints a line for each.
func (r *result) compare(names []string) error {
	fmt.Printf("%-18s%8s%9s%9s%13s%16s%7s%8s%14s%12s%20s\n", "workload", "engines", "rollouts", "bound s",
		"scheduler s", "over the bound", "idle", "static", "asynchronous", "worst case", "static's evictions")
	for _, w := range workloads {
		if len(names) > 0 && !slices.Contains(names, w.name) {
			continue
		}
		c, err := w.compare()
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		r.Workloads = append(r.Workloads, c)
		r.Evictions += c.Scheduler.Evictions + c.Worst.Evictions
		fmt.Printf("%-18s%8d%9d%9.0f%13.0f%16.2f%6.0f%%%8.2f%14.2f%12.2f%20d\n", c.Workload, c.Engines, c.Rollouts,
			c.Bound, c.Scheduler.Makespan, c.over(), 100*c.Scheduler.Idle, c.times(c.Static), c.times(c.Asynchronous),
			c.times(c.Worst), c.Static.Evictions)
	}
	return nil
}

// settings are the scheduler's usual ones, with the mean length of the rollouts, as it knows that of the step before.
func (j *job) settings() scheduler.Settings {
	s := scheduler.Default()
	s.Length = j.meanHeld()
	return s
}

// compare simulates one workload in all ways.
func (w *workload) compare() (comparison, error) {
	j := w.drawn()
	c := comparison{Workload: w.name, Engines: len(j.engines), Rollouts: len(j.rollouts), Bound: bound(j)}
	var errs [4]error
	c.Scheduler, errs[0] = schedule(j, j.settings())
	worst := scheduler.Settings{Reserve: scheduler.Worst, Park: 1, Length: j.meanHeld()}
	c.Worst, errs[1] = schedule(j, worst)
	c.Static, errs[2] = allocate(j, true)
	c.Asynchronous, errs[3] = allocate(j, false)
	return c, errors.Join(errs[:]...)
}

func (r *result) summarise() {
	var ratio, static, async []float64
	for _, c := range r.Workloads {
		ratio, static, async = append(ratio, c.over()), append(static, c.times(c.Static)),
			append(async, c.times(c.Asynchronous))
	}
	r.Ratio, r.Static, r.Async = bench.Median(ratio), bench.Median(static), bench.Median(async)
	r.Least = slices.Min(static)
	fmt.Printf("\n%d workloads. Median over the bound: %.3f (goal: at most %.2f). Static allocation takes %.2f times "+
		"as long\nin the median (goal: at least %.1f) and %.2f times at least (goal: 1); %.2f times in the median if "+
		"its calls wait for no one.\nEvictions of the scheduler: %d (goal: 0).\n", len(r.Workloads), r.Ratio, mostRatio,
		r.Static, leastStatic, r.Least, r.Async, r.Evictions)
}

// large simulates many rollouts on 256 engines, on the time of one processor.
func (r *result) large(rollouts int) error {
	w := workloads[slices.IndexFunc(workloads, func(w workload) bool { return w.name == "cluster-256" })]
	w.rollouts = rollouts
	j := w.drawn()
	began, before := time.Now(), bench.ProcessorTime()
	c, err := schedule(j, j.settings())
	if err != nil {
		return err
	}
	r.Million = million{Rollouts: rollouts, Seconds: (bench.ProcessorTime() - before).Seconds()}
	fmt.Printf("%d rollouts on 256 engines: %.1f s of processor time (goal: at most %d), %.1f s by the clock; %.2f "+
		"over the bound\n", rollouts, r.Million.Seconds, mostSeconds, time.Since(began).Seconds(),
		c.Makespan/bound(j))
	return nil
}
