// Package simulate simulates workloads of rollouts under the rollout scheduler (policy/scheduler) and under the static
// allocation that it replaces. It is a discrete-event simulation: every turn, tool call and decision is an event, and
// what happens between events follows from a formula. Nothing but the processor's time of the large simulation depends
// on the machine. Package fleet measures what the scheduler makes of real servers that fail.
//
// Glossary. A *workload* is engines and rollouts. A *rollout* is one episode with the lengths that it turns out to
// have; no scheduler is told them before. A *model* says how fast an engine is. An engine's *rows* are the turns that
// it decodes at once. The *makespan* is the time from the start to the last answer. The *bound* is a time that no
// schedule can beat. *Static* is how many times as long static allocation takes, whose engines wait for the turns of
// all their rollouts before they run tool calls, as the paper describes it.
//
// One decode step gives every row one token and takes base + row · (rows) + context · (tokens that the rows' caches
// hold) seconds: reading the weights, the arithmetic of each row, and reading the caches. A prefix, or the part of it
// that is not cached, is computed at a constant rate, before the engine decodes on. What running rows do not use of the
// cache keeps the prefixes of episodes that wait for their tools, the oldest of which are dropped first.
//
// Assumed are: no cost of scheduling in the engine, no noise, no speculative decoding, no queue for tools; the prompt
// that a group shares is computed for each of its rollouts, by every schedule; an engine that drops a running row keeps
// its text.
package simulate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy/scheduler"
)

// Case simulates the scheduler.
var Case = bench.Case{Name: "simulate", Doc: "the rollout scheduler and static allocation, simulated", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	rollouts := flags.Int("rollouts", 1_000_000, "rollouts of the large simulation; 0 leaves it out")
	return func(_ context.Context, r *bench.Report) error {
		medians := map[string]*kindRatios{}
		for _, w := range workloads {
			c, err := w.compare()
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			over, static := c.scheduler.makespan/c.bound, c.static.makespan/c.scheduler.makespan
			k := medians[w.kind()]
			if k == nil {
				k = &kindRatios{}
				medians[w.kind()] = k
			}
			k.over, k.static = append(k.over, over), append(k.static, static)
			r.Add(w.name, bench.Of("engines", float64(w.engines)), bench.Of("rollouts", float64(w.rollouts)),
				bench.Of("bound s", c.bound), bench.Of("scheduler s", c.scheduler.makespan),
				bench.Of("over the bound", over), bench.Of("static", static).AtLeast(1),
				bench.Of("evictions", float64(c.scheduler.evictions)).AtMost(0))
		}
		for _, kind := range []string{few, between, many} {
			if k := medians[kind]; k != nil {
				over := bench.Of("over the bound", bench.Median(k.over))
				if kind != between { // there the last, long rollouts run on engines that are nearly empty
					over = over.AtMost(mostRatio)
				}
				r.Add("median of "+kind, over, bench.Of("static", bench.Median(k.static)).AtLeast(leastStatic))
			}
		}
		if *rollouts > 0 {
			return large(r, *rollouts)
		}
		return nil
	}
}

// The goals of the kinds of workloads, and of the large simulation.
const (
	mostRatio   = 1.10
	leastStatic = 1.3
	mostSeconds = 60
)

// The kinds of workloads, by the number of rollouts for each engine. With few, the longest rollout is the bound; with
// many, the last rollouts are a small part of the time.
const (
	few     = "up to 16 rollouts for each engine"
	between = "64 to 1,024"
	many    = "4,096"
)

func (w *workload) kind() string {
	switch each := w.rollouts / w.engines; {
	case each <= 16:
		return few
	case each < 4096:
		return between
	}
	return many
}

// kindRatios are the ratios of all workloads of a kind.
type kindRatios struct{ over, static []float64 }

// comparison is a workload under the scheduler and under static allocation.
type comparison struct {
	bound             float64
	scheduler, static *outcome
}

// compare simulates one workload in both ways.
func (w *workload) compare() (c comparison, err error) {
	j := w.drawn()
	var failed error
	c.bound = bound(j)
	c.scheduler, err = schedule(j, j.settings())
	c.static, failed = allocate(j)
	return c, errors.Join(err, failed)
}

// settings are the scheduler's usual ones, with the mean length of the rollouts, as it knows that of the step before.
func (j *job) settings() scheduler.Settings {
	s := scheduler.Default()
	s.Length = j.meanHeld()
	return s
}

// large simulates many rollouts on 256 engines, on the time of one processor.
func large(r *bench.Report, rollouts int) error {
	w := workloads[slices.IndexFunc(workloads, func(w workload) bool { return w.name == "cluster-256" })]
	w.rollouts = rollouts
	j := w.drawn()
	before := bench.ProcessorTime()
	c, err := schedule(j, j.settings())
	if err != nil {
		return err
	}
	r.Add(fmt.Sprintf("%d rollouts on 256 engines", rollouts),
		bench.Of("processor s", (bench.ProcessorTime()-before).Seconds()).AtMost(mostSeconds),
		bench.Of("over the bound", c.makespan/bound(j)))
	return nil
}
