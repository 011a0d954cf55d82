package main

import (
	"bytes"
	"fmt"
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/internal/bench/history"
)

// The goals of the main job on two quiet cores.
const (
	mostRatio         = 1.15
	mostOrchestration = 0.05
)

// goal is a figure of interleaved rollouts, and the most that it may be.
type goal struct {
	what           string
	measured, most float64
	unit           string // of both: a format
}

// goals are all of them, in the order of the table.
type goals []goal

// goalsOf are the goals that were measured: without an interleaved run, that of a stage without work.
func goalsOf(medians []median, trips history.RoundTrips) (all goals) {
	for _, m := range medians {
		if m.Mode != modes[0] {
			continue
		}
		all = goals{
			{"rollout ÷ bound", m.Ratio, mostRatio, "%.2f"},
			{"orchestration, % of the RL time", 100 * m.Orchestration, 100 * mostOrchestration, "%.1f"},
			{fmt.Sprintf("Temporal events of a step with %d shards", m.Load.Shards), m.Load.Events,
				float64(m.Load.Limit()), "%.0f"},
		}
	}
	return append(all, goal{"stage without work ÷ bare activity", trips.Ratio(), history.MostStage, "%.1f"})
}

// missed names the goals that are missed.
func (all goals) missed() []string {
	missed := []string{}
	for _, g := range all {
		if g.measured > g.most {
			missed = append(missed, fmt.Sprintf("%s: "+g.unit+" > "+g.unit, g.what, g.measured, g.most))
		}
	}
	return missed
}

// String is a table of the goals.
func (all goals) String() string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "goal\tmeasured\tat most")
	for _, g := range all {
		fmt.Fprintf(w, "%s\t"+g.unit+"\t"+g.unit, g.what, g.measured, g.most)
		if g.measured > g.most {
			fmt.Fprint(w, "\tmissed")
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // a bytes.Buffer returns no error
	return b.String()
}
