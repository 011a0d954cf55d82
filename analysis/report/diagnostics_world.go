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
			f.Table.Rows = append(f.Table.Rows, []string{p.Name, analysis.PropertyValue(p), p.For, propertyBound(p),
				yesNo(p)})
		}
		return nil
	},
}

func propertyBound(p diagnose.Property) string {
	bound := plainNumber(p.Bound)
	if p.Share {
		bound = percent(p.Bound)
	}
	switch {
	case p.Bound == 0:
		return "–"
	case p.Below:
		return "< " + bound
	}
	return "≥ " + bound
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
	id: "error-rates", title: "Errors at the start and at the end", asks: []string{"error_rates"}, optional: true,
	note: "Share of tool calls that failed, and of actions that the environment does not know or that break the " +
		"protocol's form. The rate of the last step should be at most the upper end of the first step's 95% interval " +
		"(Wilson).",
	draw: func(d data, f *Figure) error {
		a := d.answers["error_rates"]
		f.Table = &Table{Columns: []string{"rate", "first step", "95% interval", "last step", "no higher"}, Text: true}
		for from := 0; from < a.rows(); {
			to := from
			for to+1 < a.rows() && a.text(to+1, "kind") == a.text(from, "kind") {
				to++
			}
			f.Table.Rows = append(f.Table.Rows, rateRow(a, from, to))
			from = to + 1
		}
		return nil
	},
}

// rateRow compares a rate's first and last step, which are rows of the answer.
func rateRow(a answer, from, to int) []string {
	rate := func(i int) float64 { return a.number(i, "errors") / a.number(i, "n") } // a step in the answer has rows
	low, high := diagnose.Wilson(rate(from), a.count(from, "n"))
	verdict := "yes"
	if rate(to) > high {
		verdict = "no"
	}
	return []string{a.text(from, "kind"), percent(rate(from)), fmt.Sprintf("%s to %s", percent(low), percent(high)),
		percent(rate(to)), verdict}
}

var invalidKinds = figure{
	id: "invalid-actions", title: "Invalid actions by kind", asks: []string{"invalid_kinds"}, empty: noActions,
	note: "Share of turns. A malformed response does not have its protocol's form; an unknown action has it, and the " +
		"environment does not know the action in that state.",
	draw: func(d data, f *Figure) error {
		a := d.answers["invalid_kinds"]
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "turns", Unit: chart.Percent, Stack: []chart.Series{
			{Name: "malformed", Color: 6, X: a.steps(), Y: a.column("malformed")},
			{Name: "unknown", Color: 4, X: a.steps(), Y: a.column("unknown")},
		}}, f)
		return nil
	},
}

// The Sankey diagrams of actions and of tool calls, of successes and of failures apart.
var (
	actions   = flowsBy{question: "actions", word: "action", by: "by first word", empty: noActions}
	toolCalls = flowsBy{question: "call_outcomes", word: "call", by: "by tool and outcome", empty: noCalls}

	actionsOfSuccesses = actions.figure("actions-successes", "From one action to the next, in successes", 1)
	actionsOfFailures  = actions.figure("actions-failures", "From one action to the next, in failures", 0)
	callsOfSuccesses   = toolCalls.figure("calls-successes", "From one tool call to the next, in successes", 1)
	callsOfFailures    = toolCalls.figure("calls-failures", "From one tool call to the next, in failures", 0)
)

// flowsBy describes a pair of diagrams.
type flowsBy struct{ question, word, by, empty string }

// figure is the diagram of successes or of failures.
func (by flowsBy) figure(id, title string, success int) figure {
	return figure{id: id, title: title, asks: []string{by.question}, empty: by.empty,
		draw: func(d data, f *Figure) error {
			a := d.answers[by.question]
			var all diagnose.Transitions
			trajectories := 0
			for i := range a.rows() {
				if a.count(i, "success") != success {
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
				f.Empty = "No such trajectory has two " + by.word + "s."
				return nil
			}
			flows := flowsOf(f.Title, r)
			f.SVG, f.Legend = flows.SVG(), flows.Legend()
			f.Note = fmt.Sprintf("Each column shows the first, second, … %s of %d trajectories, %s; bands lead to the "+
				"next one. %s of the transitions repeat what was before them.", by.word, trajectories, by.by,
				percent(r.Loops))
			return nil
		}}
}

// flowsOf draws the first stages of a report of transitions.
func flowsOf(title string, r diagnose.TransitionReport) chart.Flows {
	flows := chart.Flows{Title: title}
	for _, n := range r.Nodes {
		if n.Turn < mostStages {
			flows.Nodes = append(flows.Nodes, chart.FlowNode{Stage: n.Turn, Name: n.Label, Value: float64(n.Count)})
		}
	}
	for _, e := range r.Edges {
		if e.Turn+1 < mostStages {
			flows.Edges = append(flows.Edges, chart.FlowEdge{Stage: e.Turn, From: e.From, To: e.To,
				Value: float64(e.Count)})
		}
	}
	return flows
}
