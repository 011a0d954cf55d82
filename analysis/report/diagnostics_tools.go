package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

var toolErrors = figure{
	id: "tool-errors", title: "Tool errors in positive trajectories", asks: []string{"tool_use", "tool_errors"},
	empty: noSteps,
	note: "Share of the tool calls in trajectories with a positive reward that failed, could not be parsed, or ran " +
		"out of time. An outcome reward does not lower this share. The dashed lines are the share of these " +
		"trajectories that have at least one such call, and the share of failed calls in the other trajectories.",
	draw: func(d data, f *Figure) error {
		a := d.answers["tool_use"]
		steps, all, err := byStep(a, one[diagnose.ToolErrors], func(g *diagnose.ToolErrors, i int) error {
			unread, late, failed := a.count(i, "unread"), a.count(i, "timeouts"), a.count(i, "failed")
			use := diagnose.ToolUse{
				Reward: a.number(i, "reward"), Calls: a.count(i, "calls"),
				Failures: diagnose.Failures{Format: unread, Timeout: late, Execution: failed - unread - late},
			}
			for range a.count(i, "n") {
				if err := g.Add(use); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		others := d.answers["tool_errors"]
		if negative := others.column("negative"); !known(negative) && !known(others.column("positive")) {
			f.Empty = noCalls
			return nil
		}
		type report = diagnose.ToolErrorReport
		// share is a step's share, and unknown where no positive trajectory called a tool.
		share := func(of func(r report) float64) []float64 {
			return each(reports(all, (*diagnose.ToolErrors).Report), func(r report) float64 {
				if r.Calls == 0 {
					return math.NaN()
				}
				return of(r)
			})
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "calls", Unit: chart.Percent, Stack: []chart.Series{
			{Name: "failed", Color: 4, X: steps, Y: share(func(r report) float64 { return r.Execution })},
			{Name: "not parsed", Color: 6, X: steps, Y: share(func(r report) float64 { return r.Format })},
			{Name: "out of time", Color: 2, X: steps, Y: share(func(r report) float64 { return r.Timeout })},
		}, Lines: []chart.Series{
			{Name: "trajectories affected", Color: 1, X: steps, Dashed: true,
				Y: share(func(r report) float64 { return r.Touched })},
			{Name: "calls where the reward is ≤ 0", Color: 8, X: others.steps(), Y: others.column("negative"),
				Dashed: true},
		}}, f)
		return nil
	},
}

// efforts collects the cost of trajectories, by step.
func efforts(d data) (stepReports[diagnose.EffortReport], error) {
	a := d.answers["effort"]
	steps, all, err := byStep(a, one[diagnose.Effort], func(g *diagnose.Effort, i int) error {
		t := diagnose.Trajectory{
			Calls: map[string]int{"calls": a.count(i, "tool_calls")}, Tokens: a.count(i, "response_tokens"),
			Turns: a.count(i, "turns"), Truncated: a.count(i, "truncated") == 1,
		}
		for range a.count(i, "n") {
			if err := g.Add(t); err != nil {
				return err
			}
		}
		return nil
	})
	return stepReports[diagnose.EffortReport]{steps, reports(all, (*diagnose.Effort).Report)}, err
}

var effort = figure{
	id: "effort", title: "Tool calls and turns", asks: []string{"effort"}, empty: noSteps,
	note: "Means per trajectory. If the calls fall to 0 while success rises, the policy has learned to work without " +
		"the tool.",
	draw: func(d data, f *Figure) error {
		of, err := efforts(d)
		if err != nil {
			return err
		}
		type report = diagnose.EffortReport
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "per trajectory", FromZero: true,
			Lines: []chart.Series{
				{Name: "tool calls", Color: 1, X: of.steps,
					Y: each(of.reports, func(r report) float64 { return r.Calls.Mean })},
				{Name: "turns", Color: 2, X: of.steps,
					Y: each(of.reports, func(r report) float64 { return r.Turns.Mean })},
			}}, f)
		return nil
	},
}

var truncation = figure{
	id: "truncated", title: "Trajectories cut off by the token limit", asks: []string{"effort"}, empty: noSteps,
	note: "A trajectory that is cut off is graded by what it has written until then. rStar2-Agent moves to a longer " +
		"limit when about 10% are cut off.",
	draw: func(d data, f *Figure) error {
		of, err := efforts(d)
		if err != nil {
			return err
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "trajectories", Unit: chart.Percent, FromZero: true,
			Lines: []chart.Series{
				{Name: "cut off", Color: 4, X: of.steps,
					Y: each(of.reports, func(r diagnose.EffortReport) float64 { return r.Truncated })},
			}}, f)
		return nil
	},
}

var validity = figure{
	id: "validity", title: "Valid format and valid action", asks: []string{"validity"},
	empty: "No trajectory records whether its turns follow the protocol; imported trajectories never do.",
	note: "Share of turns with nothing outside the protocol's tags, and of turns with a valid action: a call that " +
		"can be parsed, or an answer. A turn without a valid action is void.",
	draw: func(d data, f *Figure) error {
		a := d.answers["validity"]
		steps, all, err := byStep(a, one[diagnose.Validity], func(g *diagnose.Validity, i int) error {
			turns := make([]diagnose.Turn, a.count(i, "turns"))
			for k := range turns { // the order does not change any ratio
				turns[k] = diagnose.Turn{Format: k >= a.count(i, "malformed_turns"),
					Action: k >= a.count(i, "void_turns")}
			}
			for range a.count(i, "n") {
				g.Add(turns...)
			}
			return nil
		})
		if err != nil {
			return err
		}
		told := reports(all, (*diagnose.Validity).Report)
		type report = diagnose.ValidityReport
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "valid", Unit: chart.Percent, Lines: []chart.Series{
			{Name: "format, turns", Color: 1, X: steps, Y: each(told, func(r report) float64 { return r.Format })},
			{Name: "format, whole trajectories", Color: 1, X: steps,
				Y: each(told, func(r report) float64 { return r.FormatThroughout }), Dashed: true},
			{Name: "action, turns", Color: 3, X: steps, Y: each(told, func(r report) float64 { return r.Action })},
			{Name: "action, whole trajectories", Color: 3, X: steps,
				Y: each(told, func(r report) float64 { return r.ActionThroughout }), Dashed: true},
		}}, f)
		return nil
	},
}

// mostStages bounds how many calls of a trajectory the flows show.
const mostStages = 6

var transitions = figure{
	id: "transitions", title: "From one tool call to the next", asks: []string{"sequences"},
	draw: func(d data, f *Figure) error {
		a := d.answers["sequences"]
		var all diagnose.Transitions
		for i := range a.rows() {
			labels := strings.Split(a.text(i, "labels"), "\x1f")
			for range a.count(i, "n") {
				all.Add(labels...)
			}
		}
		r := all.Report(diagnose.MinFrequency)
		switch {
		case len(r.Nodes) == 0:
			f.Empty = noCalls
			return nil
		case len(r.Edges) == 0:
			f.Empty = "No trajectory called tools twice."
			return nil
		}
		flows := flowsOf(f.Title, r)
		f.SVG, f.Legend = flows.SVG(), flows.Legend()
		f.Note = fmt.Sprintf("Each column shows the first, second, … call of a trajectory, by tool and outcome; "+
			"bands lead to the next call of the same trajectory. %s of the transitions repeat the outcome before "+
			"them; repeated failures usually end in failure.", percent(r.Loops))
		return nil
	},
}

var toolLoad = figure{
	id: "tool-load", title: "Load of the tools", asks: []string{"tool_load"},
	empty: "No times of tool calls are committed.",
	note: "Mean number of calls that wait for a worker, and that wait or run, between a step's first call and its " +
		"last answer. Times are measured from the dispatch of a call to its answer. A growing queue means that the " +
		"rollout waits for the sandbox.",
	draw: func(d data, f *Figure) error {
		a := d.answers["tool_load"]
		var all diagnose.Latency
		begin := a.number(0, "started")
		steps, gathered, err := byStep(a, one[diagnose.Latency], func(g *diagnose.Latency, i int) error {
			started := a.number(i, "started") - begin // small numbers keep their precision
			return g.Add(diagnose.Call{Step: a.count(i, "step"), Queued: started - a.number(i, "waited"),
				Started: started, Finished: a.number(i, "finished") - begin})
		})
		if err != nil {
			return err
		}
		for _, g := range gathered {
			all.Merge(g)
		}
		told := reports(gathered, (*diagnose.Latency).Report)
		r := all.Report()
		f.Table = &Table{Columns: []string{"calls", "mean", "median", "95th percentile", "99th", "mean wait",
			"most at once"},
			Rows: [][]string{{whole(r.Calls), millis(r.Latency.Mean), millis(r.P50), millis(r.P95), millis(r.P99),
				millis(r.Wait.Mean), whole(r.MaxInFlight)}}}
		type report = diagnose.LatencyReport
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "calls", FromZero: true, Lines: []chart.Series{
			{Name: "waiting", Color: 2, X: steps, Y: each(told, func(r report) float64 { return r.QueueDepth })},
			{Name: "waiting or running", Color: 1, X: steps,
				Y: each(told, func(r report) float64 { return r.InFlight })},
		}}, f)
		return nil
	},
}
