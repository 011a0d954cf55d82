package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/schema"
)

// lane is the order of the stages in a step; others follow.
var lane = [...]string{
	schema.StagePrompts, schema.StageRollout, schema.StageSandbox, schema.StageAssemble, schema.StageGrade, schema.StageReward,
	schema.StageResample, schema.StageForward, schema.StageAdvantage, schema.StageBuffer, schema.StageUpdate, schema.StagePublish, schema.StageEvaluate,
}

func (d data) stages() Figure {
	f, a, ok := d.asked("stages", "Stage times per step", "stages", noTimings)
	if !ok {
		return f
	}
	steps, stages, values := a.pivot("stage", "seconds", 0)
	slices.SortStableFunc(stages, func(x, y string) int { return place(x) - place(y) })
	stages = foldSmall(stages, values)
	var stack []chart.Series
	for i, stage := range stages {
		stack = append(stack, chart.Series{Name: stage, Color: 1 + i%colors, X: steps, Y: values[stage]})
	}
	f.Note = "Time in which at least one of a stage's activities ran. Shards of different stages run side by side, so that the sum may exceed the step's time."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "seconds", Unit: chart.Seconds, Stack: stack}, &f)
	return f
}

func place(stage string) int {
	if i := slices.Index(lane[:], stage); i >= 0 {
		return i
	}
	return len(lane)
}

// others is what the stages are called for which there is no colour left.
const others = "other stages"

// foldSmall adds up the stages that took least, where there are more than colours.
func foldSmall(stages []string, values map[string][]float64) []string {
	if len(stages) <= colors {
		return stages
	}
	total := func(stage string) float64 {
		sum := 0.0
		for _, v := range values[stage] {
			sum += v
		}
		return sum
	}
	ranked := slices.Clone(stages)
	slices.SortStableFunc(ranked, func(a, b string) int { return cmp.Compare(total(b), total(a)) })
	small := ranked[colors-1:]
	sums := make([]float64, len(values[small[0]]))
	for _, stage := range small {
		for i, v := range values[stage] {
			sums[i] += v
		}
	}
	values[others] = sums
	kept := slices.DeleteFunc(slices.Clone(stages), func(s string) bool { return slices.Contains(small, s) })
	return append(kept, others)
}

func (d data) orchestration() Figure {
	f := d.figure("orchestration", "Orchestration share", "orchestration")
	a := d.answers["orchestration"]
	if a.rows() == 0 || !known(a.column("share")) {
		f.Empty = noTimings
		return f
	}
	f.Note = fmt.Sprintf("Part of each step's time, from its selection of prompts to the next one's, in which no activity ran. Over all steps: %s. Evaluations do not count, nor gaps of more than ten seconds: pauses, parked and interrupted runs.", chart.Value(d.orchestrationShare(), chart.Percent))
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "no activity", Unit: chart.Percent, FromZero: true, Lines: []chart.Series{
		{Name: "orchestration", Color: 7, X: a.steps(), Y: a.column("share")},
	}}, &f)
	return f
}

// orchestrationShare is that of all steps together.
func (d data) orchestrationShare() float64 {
	a := d.answers["orchestration"]
	idle, seconds := 0.0, 0.0
	for i := range a.rows() {
		idle, seconds = idle+a.number(i, "idle"), seconds+a.number(i, "seconds")
	}
	return idle / seconds
}

func (d data) latency() Figure {
	f, a, ok := d.asked("latency", "Tool latency", "latency", "No times of tool calls are committed.")
	if !ok {
		return f
	}
	f.Note = "Wall time of the tool calls that really ran; a call that shares another's execution has no time of its own."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "milliseconds", Unit: chart.Milliseconds, FromZero: true, Lines: []chart.Series{
		{Name: "median", Color: 1, X: a.steps(), Y: a.column("p50")},
		{Name: "90th percentile", Color: 2, X: a.steps(), Y: a.column("p90")},
		{Name: "99th percentile", Color: 4, X: a.steps(), Y: a.column("p99")},
	}}, &f)
	return f
}

// devices is left out of runs whose engine has no devices to measure: the CPU engine's.
func (d data) devices() []Figure {
	f, a, ok := d.asked("devices", "Devices of the updates", "devices", noTimings)
	if !ok {
		return nil
	}
	f.Note = "What an update's engine used: the share of the time in which its GPUs worked, and model flops over what the GPUs can do at most (MFU)."
	if rates := numbers(a.column("tokens_per_s")); len(rates) > 0 {
		sum := 0.0
		for _, r := range rates {
			sum += r
		}
		f.Note += fmt.Sprintf(" On average %.0f tokens a second, forward, backward and step.", sum/float64(len(rates)))
	}
	if held := numbers(a.column("gib")); len(held) > 0 {
		f.Note += fmt.Sprintf(" At most %.1f GiB on one device.", slices.Max(held))
	}
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "share", Unit: chart.Percent, FromZero: true, Lines: []chart.Series{
		{Name: "GPUs at work", Color: 1, X: a.steps(), Y: a.column("busy")},
		{Name: "MFU", Color: 4, X: a.steps(), Y: a.column("mfu")},
	}}, &f)
	return []Figure{f}
}

// numbers are those of the values that are numbers.
func numbers(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}
