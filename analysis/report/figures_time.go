package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	declared "github.com/ropewalk/ropewalk/schema/stages"
)

// order is that of the stages of a step and its evaluation, as far as they have manifests; others follow.
var order = declared.Named(func(s declared.Stage) bool {
	return (s.Phase == declared.Step || s.Phase == declared.Alongside) && !s.Unread
})

var stages = figure{
	id: "stages", title: "Stage times per step", asks: []string{"stages"}, empty: noTimings,
	note: "Time in which at least one activity of the stage ran. Shards run different stages at the same time, so " +
		"the sum can exceed the step's time.",
	draw: func(d data, f *Figure) error {
		a := d.answers["stages"]
		steps, stages, values := a.pivot("stage", "seconds", 0)
		slices.SortStableFunc(stages, func(x, y string) int { return orderOf(x) - orderOf(y) })
		stages = foldSmall(stages, values)
		var stack []chart.Series
		for i, stage := range stages {
			stack = append(stack, chart.Series{Name: stage, Color: 1 + i%colors, X: steps, Y: values[stage]})
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "seconds", Unit: chart.Seconds, Stack: stack}, f)
		return nil
	},
}

var rolloutTime = figure{
	id: "rollout-time", title: "Generation, tools and idle time", asks: []string{"rollout_time"}, empty: noTimings,
	axes: chart.Chart{YLabel: "seconds", Unit: chart.Seconds},
	stack: []line{solid("generation alone", 1, "generation"), solid("generation and tools", 2, "overlap"),
		solid("tools alone", 4, "tools"), solid("idle", 12, "idle")},
	draw: func(d data, f *Figure) error {
		a := d.answers["rollout_time"]
		parts := []string{"generation", "overlap", "tools", "idle"}
		all := 0.0
		for _, column := range parts {
			all += sum(a.column(column))
		}
		var told []string
		for i, name := range []string{"generation alone", "generation and tools", "tools alone", "idle"} {
			told = append(told, fmt.Sprintf("%s %s", name, percent(sum(a.column(parts[i]))/all)))
		}
		f.Note = "The rollout of each step, from its first response to its last tool result: while one shard " +
			"generates, tools may run for another. A shard that waits for the sampler counts as generation. Over " +
			"all steps: " + strings.Join(told, ", ") + "."
		return nil
	},
}

func orderOf(stage string) int {
	if i := slices.Index(order, stage); i >= 0 {
		return i
	}
	return len(order)
}

// others is the name for the stages that have no colour of their own.
const others = "other stages"

// foldSmall combines the shortest stages where there are more stages than colours.
func foldSmall(names []string, values map[string][]float64) []string {
	if len(names) <= colors {
		return names
	}
	ranked := slices.Clone(names)
	slices.SortStableFunc(ranked, func(a, b string) int { return cmp.Compare(sum(values[b]), sum(values[a])) })
	small := ranked[colors-1:]
	sums := make([]float64, len(values[small[0]]))
	for _, stage := range small {
		for i, v := range values[stage] {
			sums[i] += v
		}
	}
	values[others] = sums
	kept := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return slices.Contains(small, s) })
	return append(kept, others)
}

var orchestration = figure{
	id: "orchestration", title: "Orchestration share", asks: []string{"orchestration"}, empty: noTimings,
	axes: sharesFromZero("no activity"), lines: []line{solid("orchestration", 7, "share")},
	draw: func(d data, f *Figure) error {
		f.Note = fmt.Sprintf("Share of each step's time, from its selection of prompts to the next step's, in which "+
			"no activity ran. Over all steps: %s. Evaluations and gaps of more than ten seconds (a paused, parked "+
			"or interrupted run) are not counted.", percent(orchestrationShare(d)))
		return nil
	},
}

// orchestrationShare is the share over all steps.
func orchestrationShare(d data) float64 {
	a := d.answers["orchestration"]
	return sum(a.column("idle")) / sum(a.column("seconds"))
}

var latency = figure{
	id: "latency", title: "Tool latency", asks: []string{"latency"}, empty: "No times of tool calls are committed.",
	note: "Wall time of the tool calls that were executed. A call that reuses another call's result has no time.",
	axes: chart.Chart{YLabel: "milliseconds", Unit: chart.Milliseconds, FromZero: true},
	lines: []line{solid("median", 1, "p50"), solid("90th percentile", 2, "p90"),
		solid("99th percentile", 4, "p99")},
}

var toolLoad = figure{
	id: "tool-load", title: "Load of the tools", asks: []string{"tool_load", "tool_waits"},
	empty: "No times of tool calls are committed.",
	note: "Mean number of calls that wait for a worker, and that wait or run, between a step's first call and its " +
		"last answer. Times are measured from the dispatch of a call to its answer. A growing queue means that the " +
		"rollout waits for the sandbox.",
	axes:  amounts("calls"),
	lines: []line{solid("waiting", 2, "waiting"), solid("waiting or running", 1, "in_flight")},
	draw: table("tool_waits", map[string]chart.Unit{"mean": chart.Milliseconds, "median": chart.Milliseconds,
		"95th percentile": chart.Milliseconds, "99th": chart.Milliseconds, "mean wait": chart.Milliseconds}),
}

// devices is left out of runs whose engine measures no devices, such as the CPU engine.
var devices = figure{
	id: "devices", title: "Devices of the updates", asks: []string{"devices"}, optional: true,
	note: "What the engine used during updates: the share of time in which its GPUs were busy, and its model flops " +
		"as a share of the GPUs' peak (MFU).",
	axes: sharesFromZero("share"), lines: []line{solid("GPUs busy", 1, "busy"), solid("MFU", 4, "mfu")},
	draw: func(d data, f *Figure) error {
		a := d.answers["devices"]
		if rates := numbers(a.column("tokens_per_s")); len(rates) > 0 {
			f.Note += fmt.Sprintf(" Mean throughput, forward, backward and optimiser step: %.0f tokens per second.",
				sum(rates)/float64(len(rates)))
		}
		if held := numbers(a.column("gib")); len(held) > 0 {
			f.Note += fmt.Sprintf(" Peak memory of one device: %.1f GiB.", slices.Max(held))
		}
		return nil
	},
}
