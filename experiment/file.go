package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/recipes"
)

// File declares an experiment.
type File struct {
	Name     string
	Question string // what the experiment asks, and why it has these settings
	// Arms and Points are multiplied by each other and by Seeds. An experiment without a grid has one point without
	// settings.
	Arms        []Arm
	Points      []point
	Seeds       []uint64
	Outcomes    []Outcome
	Comparisons []comparison
	Budget      Budget
	Parallel    int  // trials at once
	Program     bool // a trial that another build of the program has made does not count
	Stop        Stop

	file string
	doc  []byte
	line map[string]int // of entries, by their paths
}

// Arm is a recipe with settings.
type Arm struct {
	Name   string
	Recipe string   // a built-in recipe, or a file
	Set    []string // path=value
}

// point is a choice of the grid's values.
type point struct {
	Name string // "" without a grid
	Set  []string
}

// comparison asks for the difference between two arms at each point of the grid.
type comparison struct {
	Arm, Against string
	Outcomes     []string // names
}

// Budget is up to where trials are compared.
type Budget struct {
	Axis string
	// Amount is the end of the axis; 0: what the trials of a comparison with one seed have in common.
	Amount float64
}

// Stop is the rule by which trials end early. It is asked at each of the steps At.
type Stop struct {
	At []int
	// By names the outcome by which the best arms at a point go on, and Keep is their share; "" keeps all.
	By   string
	Keep float64
	// Collapse names the outcome whose fall below a bound ends a trial; "" ends none.
	Collapse string
	Below    float64
}

// Axes are what a budget can count. Steps need no curve.
const (
	AxisSteps   = "steps"
	axisTokens  = "tokens"
	AxisCalls   = "calls"
	AxisUpdates = "updates"
	axisSeconds = "seconds"
)

// Axis declares what a budget can count.
type Axis struct {
	Name, Doc string
	SQL       string // step and amount; "" for steps
}

// Axes lists all axes.
var Axes = []Axis{
	{AxisSteps, "training steps", ""},
	{axisTokens, "sampled tokens", "select step, sum(len(token_ids) - context_tokens) as value from turns group by 1"},
	{AxisCalls, "tool calls and actions", "select step, sum(tool_calls) as value from turns group by 1"},
	{AxisUpdates, "optimiser steps", "select step, count(distinct optimizer_step) as value from updates group by 1"},
	{axisSeconds, "seconds in which a stage other than evaluate ran", "select step, " +
		"sum(greatest(e - greatest(s, coalesce(before, s)), 0)) / 1e6 as value from (select step, start_micros as s, " +
		"end_micros as e, max(end_micros) over (partition by step order by start_micros, end_micros rows between " +
		"unbounded preceding and 1 preceding) as before from timings where kind = 'activity' and stage <> " +
		"'evaluate') where step > 0 group by 1"},
}

// Parse reads an experiment's file. The error is of type recipes.Problems and holds every fault.
func Parse(file string, text []byte) (*File, error) {
	f := &File{file: file, doc: text, line: map[string]int{}, Parallel: 1}
	r := reader{file: f}
	r.document(text)
	f.setDefaults()
	f.check(&r)
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b recipes.Problem) int { return cmp.Compare(a.Line, b.Line) })
		return nil, r.problems
	}
	return f, nil
}

// setDefaults fills in what the file leaves out.
func (f *File) setDefaults() {
	if len(f.Points) == 0 {
		f.Points = []point{{}}
	}
	if len(f.Outcomes) == 0 {
		f.Outcomes = []Outcome{named("success"), named("auc")}
	}
	f.Budget.Axis = cmp.Or(f.Budget.Axis, AxisSteps)
	if len(f.Comparisons) == 0 && len(f.Arms) > 1 {
		for _, a := range f.Arms[1:] {
			f.Comparisons = append(f.Comparisons, comparison{Arm: a.Name, Against: f.Arms[0].Name})
		}
	}
	for i := range f.Comparisons {
		if c := &f.Comparisons[i]; len(c.Outcomes) == 0 {
			for _, o := range f.Outcomes {
				c.Outcomes = append(c.Outcomes, o.Name)
			}
		}
	}
	if f.Stop.By != "" && f.Stop.Keep == 0 {
		f.Stop.Keep = 0.5
	}
}

// Along compares trials over another axis than the file's budget, each pair up to the amount that both have spent.
func (f *File) Along(axis string) error {
	if axis == "" || axis == f.Budget.Axis {
		return nil
	}
	if !slices.Contains(axes(), axis) {
		return fmt.Errorf("must be one of %s, got %q", strings.Join(axes(), ", "), axis)
	}
	f.Budget = Budget{Axis: axis}
	return nil
}

// axes are the names of Axes.
func axes() []string {
	out := make([]string, len(Axes))
	for i, a := range Axes {
		out[i] = a.Name
	}
	return out
}

// Text returns the file's text.
func (f *File) Text() string { return string(f.doc) }

// outcome returns the declaration of an outcome of the file.
func (f *File) outcome(name string) (Outcome, bool) {
	i := slices.IndexFunc(f.Outcomes, func(o Outcome) bool { return o.Name == name })
	if i < 0 {
		return Outcome{}, false
	}
	return f.Outcomes[i], true
}
