package report

import (
	"cmp"
	"fmt"
	"math"
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
		slices.SortStableFunc(stages, func(x, y string) int { return place(x) - place(y) })
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
	draw: func(d data, f *Figure) error {
		a := d.answers["rollout_time"]
		parts := []struct {
			column, name string
			color        int
		}{
			{"generation", "generation alone", 1}, {"overlap", "generation and tools", 2}, {"tools", "tools alone", 4},
			{"idle", "idle", 12},
		}
		var stack []chart.Series
		var shares []string
		all := 0.0
		for _, p := range parts {
			all += total(a, p.column)
			stack = append(stack, chart.Series{Name: p.name, Color: p.color, X: a.steps(), Y: a.column(p.column)})
		}
		for _, p := range parts {
			shares = append(shares, fmt.Sprintf("%s %s", p.name, percent(total(a, p.column)/all)))
		}
		f.Note = "The rollout of each step, from its first response to its last tool result: while one shard " +
			"generates, tools may run for another. A shard that waits for the sampler counts as generation. Over " +
			"all steps: " + strings.Join(shares, ", ") + "."
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "seconds", Unit: chart.Seconds, Stack: stack}, f)
		return nil
	},
}

func place(stage string) int {
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
	total := func(stage string) float64 {
		sum := 0.0
		for _, v := range values[stage] {
			sum += v
		}
		return sum
	}
	ranked := slices.Clone(names)
	slices.SortStableFunc(ranked, func(a, b string) int { return cmp.Compare(total(b), total(a)) })
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
	id: "orchestration", title: "Orchestration share", asks: []string{"orchestration"}, values: "share",
	empty: noTimings,
	draw: func(d data, f *Figure) error {
		a := d.answers["orchestration"]
		f.Note = fmt.Sprintf("Share of each step's time, from its selection of prompts to the next step's, in which "+
			"no activity ran. Over all steps: %s. Evaluations and gaps of more than ten seconds (a paused, parked "+
			"or interrupted run) are not counted.", chart.Value(orchestrationShare(d), chart.Percent))
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "no activity", Unit: chart.Percent, FromZero: true,
			Lines: []chart.Series{
				{Name: "orchestration", Color: 7, X: a.steps(), Y: a.column("share")},
			}}, f)
		return nil
	},
}

// orchestrationShare is the share over all steps.
func orchestrationShare(d data) float64 {
	a := d.answers["orchestration"]
	idle, seconds := 0.0, 0.0
	for i := range a.rows() {
		idle, seconds = idle+a.number(i, "idle"), seconds+a.number(i, "seconds")
	}
	return idle / seconds
}

var latency = figure{
	id: "latency", title: "Tool latency", asks: []string{"latency"}, empty: "No times of tool calls are committed.",
	note: "Wall time of the tool calls that were executed. A call that reuses another call's result has no time.",
	draw: func(d data, f *Figure) error {
		a := d.answers["latency"]
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "milliseconds", Unit: chart.Milliseconds,
			FromZero: true, Lines: []chart.Series{
				{Name: "median", Color: 1, X: a.steps(), Y: a.column("p50")},
				{Name: "90th percentile", Color: 2, X: a.steps(), Y: a.column("p90")},
				{Name: "99th percentile", Color: 4, X: a.steps(), Y: a.column("p99")},
			}}, f)
		return nil
	},
}

// devices is left out of runs whose engine measures no devices, such as the CPU engine.
var devices = figure{
	id: "devices", title: "Devices of the updates", asks: []string{"devices"}, optional: true,
	note: "What the engine used during updates: the share of time in which its GPUs were busy, and its model flops " +
		"as a share of the GPUs' peak (MFU).",
	draw: func(d data, f *Figure) error {
		a := d.answers["devices"]
		if rates := numbers(a.column("tokens_per_s")); len(rates) > 0 {
			sum := 0.0
			for _, r := range rates {
				sum += r
			}
			f.Note += fmt.Sprintf(" Mean throughput, forward, backward and optimiser step: %.0f tokens per second.",
				sum/float64(len(rates)))
		}
		if held := numbers(a.column("gib")); len(held) > 0 {
			f.Note += fmt.Sprintf(" Peak memory of one device: %.1f GiB.", slices.Max(held))
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "share", Unit: chart.Percent, FromZero: true,
			Lines: []chart.Series{
				{Name: "GPUs busy", Color: 1, X: a.steps(), Y: a.column("busy")},
				{Name: "MFU", Color: 4, X: a.steps(), Y: a.column("mfu")},
			}}, f)
		return nil
	},
}

// numbers returns the values without NaN.
func numbers(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}
