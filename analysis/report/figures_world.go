package report

import (
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// noActions is the reason of figures about actions.
const noActions = "The run's environment is not interactive: its trajectories have no actions."

var beforeTraining = figure{
	id: "before-training", title: "What the world offers before training",
	note: "Properties of the trajectories of the first step, which the policy before training sampled. Each method " +
		"acts on one of them: without the property, the world cannot show the method's effect.",
	draw: func(d data, f *Figure) error {
		if d.offered == nil {
			f.Empty = noSteps
			return nil
		}
		f.Table = &Table{Columns: []string{"property", "value", "wanted by", "bound", "reached"}, Text: true}
		for _, p := range d.offered.List() {
			f.Table.Rows = append(f.Table.Rows, []string{p.Name, analysis.PropertyValue(p), p.For,
				analysis.PropertyBound(p), yesNo(p)})
		}
		return nil
	},
}

func yesNo(p diagnose.Property) string {
	switch {
	case p.Bound == 0 || !p.Known:
		return "–"
	case p.Reached():
		return "yes"
	}
	return "no"
}

var errorRates = figure{
	id: "error-rates", title: "Errors at the start and at the end",
	note: "Share of tool calls that failed, and of actions that the environment does not know or that break the " +
		"protocol's form. The rate of the last step should be at most the upper end of the first step's 95% interval " +
		"(Wilson).",
	draw: func(d data, f *Figure) error {
		if len(d.rates) == 0 {
			f.Empty = "No two steps have calls of tools or actions."
			return nil
		}
		f.Table = &Table{Columns: []string{"rate", "first step", "95% interval", "last step", "no higher"}, Text: true}
		for _, r := range d.rates {
			verdict := map[bool]string{true: "yes", false: "no"}[r.NoHigher]
			f.Table.Rows = append(f.Table.Rows, []string{r.Kind, percent(r.First.Rate),
				percent(r.Low) + " to " + percent(r.High), percent(r.Last.Rate), verdict})
		}
		return nil
	},
}

var invalidKinds = figure{
	id: "invalid-actions", title: "Invalid actions by kind", asks: []string{"invalid_kinds"}, empty: noActions,
	note: "Share of turns. A malformed response does not have its protocol's form; an unknown action has it, and the " +
		"environment does not know the action in that state.",
	axes: shares("turns"), stack: []line{solid("malformed", 6, "malformed"), solid("unknown", 4, "unknown")},
}

// The Sankey diagrams of actions and of tool calls, of successes and of failures apart.
var (
	actions = flows{question: "actions", of: "action", by: "by first word", empty: noActions}
	calls   = flows{question: "call_outcomes", of: "call", by: "by tool and outcome", empty: noCalls}

	actionsOfSuccesses = actions.figure("actions-successes", "From one action to the next, in successes", "1")
	actionsOfFailures  = actions.figure("actions-failures", "From one action to the next, in failures", "0")
	callsOfSuccesses   = calls.figure("calls-successes", "From one tool call to the next, in successes", "1")
	callsOfFailures    = calls.figure("calls-failures", "From one tool call to the next, in failures", "0")
	allCalls           = calls.figure("transitions", "From one tool call to the next", "")
)

// flows describes diagrams of what follows what in trajectories.
type flows struct{ question, of, by, empty string }

// figure is the diagram of successes ("1"), of failures ("0"), or of all trajectories ("").
func (by flows) figure(id, title, success string) figure {
	return figure{id: id, title: title, asks: []string{by.question}, empty: by.empty,
		draw: func(d data, f *Figure) error {
			a := d.answers[by.question]
			var all diagnose.Transitions
			trajectories := 0
			for i := range a.rows() {
				if success != "" && a.text(i, "success") != success {
					continue
				}
				labels := strings.Split(a.text(i, "labels"), "\x1f")
				for range a.count(i, "n") {
					trajectories++
					all.Add(labels...)
				}
			}
			r := all.Report(diagnose.MinFrequency)
			if len(r.Edges) == 0 {
				f.Empty = "No such trajectory has two " + by.of + "s."
				return nil
			}
			drawn := flowsOf(f.Title, r)
			f.SVG, f.Legend = drawn.SVG(), drawn.Legend()
			f.Note = fmt.Sprintf("Each column shows the first, second, … %s of %d trajectories, %s; bands lead to the "+
				"next one. %s of the transitions repeat what was before them.", by.of, trajectories, by.by,
				percent(r.Loops))
			return nil
		}}
}

// mostStages bounds how many calls of a trajectory the flows show.
const mostStages = 6

// flowsOf draws the first stages of a report of transitions.
func flowsOf(title string, r diagnose.TransitionReport) chart.Flows {
	out := chart.Flows{Title: title}
	for _, n := range r.Nodes {
		if n.Turn < mostStages {
			out.Nodes = append(out.Nodes, chart.FlowNode{Stage: n.Turn, Name: n.Label, Value: float64(n.Count)})
		}
	}
	for _, e := range r.Edges {
		if e.Turn+1 < mostStages {
			out.Edges = append(out.Edges,
				chart.FlowEdge{Stage: e.Turn, From: e.From, To: e.To, Value: float64(e.Count)})
		}
	}
	return out
}

var toolErrors = figure{
	id: "tool-errors", title: "Tool errors in positive trajectories", asks: []string{"tool_errors"}, empty: noCalls,
	note: "Share of the tool calls in trajectories with a positive reward that failed, could not be parsed, or ran " +
		"out of time. An outcome reward does not lower this share. The dashed lines are the share of these " +
		"trajectories that have at least one such call, and the share of failed calls in the other trajectories.",
	axes:  shares("calls"),
	stack: []line{solid("failed", 4, "failed"), solid("not parsed", 6, "unread"), solid("out of time", 2, "late")},
	lines: []line{dashed("trajectories affected", 1, "affected"),
		dashed("calls where the reward is ≤ 0", 8, "negative")},
}

var effort = figure{
	id: "effort", title: "Tool calls and turns", asks: []string{"effort"}, empty: noSteps,
	note: "Means per trajectory. If the calls fall to 0 while success rises, the policy has learned to work without " +
		"the tool.",
	axes: amounts("per trajectory"), lines: []line{solid("tool calls", 1, "calls"), solid("turns", 2, "turns")},
}

var truncation = figure{
	id: "truncated", title: "Trajectories cut off by the token limit", asks: []string{"effort"}, empty: noSteps,
	note: "A trajectory that is cut off is graded by what it has written until then. rStar2-Agent moves to a longer " +
		"limit when about 10% are cut off.",
	axes: sharesFromZero("trajectories"), lines: []line{solid("cut off", 4, "truncated")},
}

var validity = figure{
	id: "validity", title: "Valid format and valid action", asks: []string{"validity"},
	empty: "No trajectory records whether its turns follow the protocol; imported trajectories never do.",
	note: "Share of turns with nothing outside the protocol's tags, and of turns with a valid action: a call that " +
		"can be parsed, or an answer. A turn without a valid action is void.",
	axes: shares("valid"),
	lines: []line{solid("format, turns", 1, "format"), dashed("format, whole trajectories", 1, "format_throughout"),
		solid("action, turns", 3, "action"), dashed("action, whole trajectories", 3, "action_throughout")},
}

// noSearches is the reason of figures about searching.
const noSearches = "No trajectory searched for anything."

var searchEffort = figure{
	id: "search-effort", title: "Searches and documents read", asks: []string{"searching"}, empty: noSearches,
	note: "Means per trajectory: searches, queries that differ, and documents (in a shop, products) that were " +
		"opened. Searches above the queries are repeats.",
	axes: amounts("per trajectory"),
	lines: []line{solid("searches", 1, "mean"), dashed("different queries", 3, "queries"),
		solid("documents read", 2, "documents")},
}

var searchOutcomes = figure{
	id: "search-outcomes", title: "Search effort in successes and failures", asks: []string{"searching"},
	empty: noSearches,
	note: "Means per trajectory, of successes and of failures apart. If failures have more searches, the policy goes " +
		"on searching when it is lost.",
	axes: amounts("per trajectory"),
	lines: []line{solid("searches, successes", 1, "searches_won"), dashed("searches, failures", 1, "searches_lost"),
		solid("documents, successes", 2, "documents_won"), dashed("documents, failures", 2, "documents_lost")},
}

var searchRepeats = figure{
	id: "search-repeats", title: "Repeated searches", asks: []string{"searching"}, empty: noSearches,
	note:  "Share of searches whose words an earlier search of the same trajectory had.",
	axes:  sharesFromZero("searches"),
	lines: []line{solid("in successes", 1, "repeated_won"), solid("in failures", 4, "repeated_lost")},
}
