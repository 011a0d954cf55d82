package report

import (
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// toolDiagnostics are of what trajectories do and cost.
func (d data) toolDiagnostics() []Figure {
	efforts := d.efforts()
	return []Figure{d.failures(), d.effort(efforts), d.truncation(efforts), d.validity(), d.transitions(), d.toolLoad()}
}

// noCalls is why figures of tool calls are empty.
const noCalls = "No trajectory called a tool."

func (d data) failures() Figure {
	f := d.figure("tool-failures", "How tool calls of positive trajectories fail", "tool_use")
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
		return f.refused(err)
	}
	told, calls := reports(all, (*diagnose.ToolErrors).Report), 0
	for _, r := range told {
		calls += r.Calls
	}
	if calls == 0 {
		f.Empty = "No trajectory with a positive reward called a tool."
		return f
	}
	type report = diagnose.ToolErrorReport
	f.Note = "Share of the calls in trajectories with a positive reward that could not be read, failed as they ran, or ran out of time. A reward for the outcome alone does not drive it down; the line is the share of calling trajectories with at least one such call."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "calls", Unit: chart.Percent, Stack: []chart.Series{
		{Name: "failed", Color: 4, X: steps, Y: each(told, func(r report) float64 { return r.Execution })},
		{Name: "not readable", Color: 6, X: steps, Y: each(told, func(r report) float64 { return r.Format })},
		{Name: "out of time", Color: 2, X: steps, Y: each(told, func(r report) float64 { return r.Timeout })},
	}, Lines: []chart.Series{{Name: "trajectories touched", Color: 1, X: steps, Y: each(told, func(r report) float64 { return r.Touched }), Dashed: true}}}, &f)
	return f
}

// efforts gathers what trajectories cost, step by step.
func (d data) efforts() told[diagnose.EffortReport] {
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
	return told[diagnose.EffortReport]{steps, reports(all, (*diagnose.Effort).Report), err}
}

func (d data) effort(of told[diagnose.EffortReport]) Figure {
	f := d.figure("effort", "Tool calls and turns", "effort")
	if !of.tells(&f, noSteps) {
		return f
	}
	type report = diagnose.EffortReport
	f.Note = "Means of a trajectory. Calls that fall to 0 while success rises say that the policy has learnt to do without the tool."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "per trajectory", FromZero: true, Lines: []chart.Series{
		{Name: "tool calls", Color: 1, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.Calls.Mean })},
		{Name: "turns", Color: 2, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.Turns.Mean })},
	}}, &f)
	return f
}

func (d data) truncation(of told[diagnose.EffortReport]) Figure {
	f := d.figure("truncated", "Trajectories cut off by the token limit", "effort")
	if !of.tells(&f, noSteps) {
		return f
	}
	f.Note = "A trajectory that is cut off is judged by what it had written so far. rStar2-Agent moves on to a longer limit where about 10% are."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "trajectories", Unit: chart.Percent, FromZero: true, Lines: []chart.Series{
		{Name: "cut off", Color: 4, X: of.steps, Y: each(of.reports, func(r diagnose.EffortReport) float64 { return r.Truncated })},
	}}, &f)
	return f
}

func (d data) validity() Figure {
	f, a, ok := d.asked("validity", "Valid format and valid action", "validity", "No trajectory says how its turns keep to the protocol: imported ones do not.")
	if !ok {
		return f
	}
	steps, all, err := byStep(a, one[diagnose.Validity], func(g *diagnose.Validity, i int) error {
		turns := make([]diagnose.Turn, a.count(i, "turns"))
		for k := range turns { // which of them does not matter to any ratio
			turns[k] = diagnose.Turn{Format: k >= a.count(i, "malformed_turns"), Action: k >= a.count(i, "void_turns")}
		}
		for range a.count(i, "n") {
			g.Add(turns...)
		}
		return nil
	})
	if err != nil {
		return f.refused(err)
	}
	told := reports(all, (*diagnose.Validity).Report)
	type report = diagnose.ValidityReport
	f.Note = "Share of turns with nothing outside the protocol's tags, and of those that act: a call that can be read, or an answer. Turns that do not act are void: they spend tokens on nothing."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "valid", Unit: chart.Percent, Lines: []chart.Series{
		{Name: "format, turns", Color: 1, X: steps, Y: each(told, func(r report) float64 { return r.Format })},
		{Name: "format, whole trajectories", Color: 1, X: steps, Y: each(told, func(r report) float64 { return r.FormatThroughout }), Dashed: true},
		{Name: "action, turns", Color: 3, X: steps, Y: each(told, func(r report) float64 { return r.Action })},
		{Name: "action, whole trajectories", Color: 3, X: steps, Y: each(told, func(r report) float64 { return r.ActionThroughout }), Dashed: true},
	}}, &f)
	return f
}

// mostStages bounds how many calls of a trajectory the flows show.
const mostStages = 6

func (d data) transitions() Figure {
	f := d.figure("transitions", "From one tool call to the next", "sequences")
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
		return f
	case len(r.Edges) == 0:
		f.Empty = "No trajectory called tools twice."
		return f
	}
	flows := chart.Flows{Title: f.Title}
	for _, n := range r.Nodes {
		if n.Turn < mostStages {
			flows.Nodes = append(flows.Nodes, chart.FlowNode{Stage: n.Turn, Name: n.Label, Value: float64(n.Count)})
		}
	}
	for _, e := range r.Edges {
		if e.Turn+1 < mostStages {
			flows.Edges = append(flows.Edges, chart.FlowEdge{Stage: e.Turn, From: e.From, To: e.To, Value: float64(e.Count)})
		}
	}
	f.SVG, f.Legend = flows.SVG(), flows.Legend()
	f.Note = fmt.Sprintf("Each column is a trajectory's first, second … call, by tool and outcome; bands lead to what the same trajectory called next. %s of the transitions lead from an outcome to itself: loops of one failure end in failure.", percent(r.Loops))
	return f
}

func (d data) toolLoad() Figure {
	f, a, ok := d.asked("tool-load", "Load of the tools", "tool_load", "No times of tool calls are committed.")
	if !ok {
		return f
	}
	var all diagnose.Latency
	begin := a.number(0, "started")
	steps, gathered, err := byStep(a, one[diagnose.Latency], func(g *diagnose.Latency, i int) error {
		started := a.number(i, "started") - begin // small numbers keep their precision
		return g.Add(diagnose.Call{Step: a.count(i, "step"), Queued: started - a.number(i, "waited"), Started: started, Finished: a.number(i, "finished") - begin})
	})
	if err != nil {
		return f.refused(err)
	}
	for _, g := range gathered {
		all.Merge(g)
	}
	told := reports(gathered, (*diagnose.Latency).Report)
	r := all.Report()
	f.Table = &Table{Columns: []string{"calls", "mean", "median", "95th percentile", "99th", "of it waiting", "most at once"},
		Rows: [][]string{{whole(r.Calls), millis(r.Latency.Mean), millis(r.P50), millis(r.P95), millis(r.P99), millis(r.Wait.Mean), whole(r.MaxInFlight)}}}
	type report = diagnose.LatencyReport
	f.Note = "Mean number of calls at a time that wait for a worker, and that wait or run, from a step's first call to its last answer; the times are from a call's dispatch to its answer. A queue that grows says that the sandbox is what the rollout waits for."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "calls", FromZero: true, Lines: []chart.Series{
		{Name: "waiting", Color: 2, X: steps, Y: each(told, func(r report) float64 { return r.QueueDepth })},
		{Name: "waiting or running", Color: 1, X: steps, Y: each(told, func(r report) float64 { return r.InFlight })},
	}}, &f)
	return f
}
