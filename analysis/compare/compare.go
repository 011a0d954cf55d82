// Package compare compares whole runs: what they were made from, how they went step by step, how they do on the same
// held-out problems, and where their records first differ. It also compares two generations of one step.
//
// Glossary. The *base* is the run that was named first; every other run is compared with it. A *figure* is one number
// of a step. A *divergence* is the first row, in the order in which the stages ran, that two records do not have in
// common: everything before it is equal, so it shows where a change of recipe, code or machine first acts. Of two
// generations, a trajectory's *advantage* is that of its first token with loss, multiplied by its weight, as the update
// reads it, and a *flip* is an advantage whose sign changed.
//
//	Read: records → Origin (recipe, programs, machines), steps → figures, evaluations → paired differences,
//	pieces → divergence; Comparison → Write (text) or JSON; package report draws the page
package compare

import (
	"context"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/badinput"
)

// mostRuns is how many runs can be compared at once: each has a colour of its own.
const mostRuns = 8

// Comparison is the result for two or more runs. Lists over runs have the order in which the runs were named.
type Comparison struct {
	Runs        []analysis.Run `json:"runs"`
	Recipe      Recipe         `json:"recipe"`
	Made        []Row          `json:"made"`  // by what: all rows, equal or not
	Steps       []Step         `json:"steps"` // of any run
	Evaluations []Evaluation   `json:"evaluations"`
	Divergences []AgainstBase  `json:"divergences"` // a run after the base each
}

// Row is one fact about every run; "" where the record does not say.
type Row struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	Differ bool     `json:"differ"`
}

// row makes a Row of values.
func row(name string, values []string) Row {
	out := Row{Name: name, Values: values}
	for _, v := range values {
		out.Differ = out.Differ || v != values[0]
	}
	return out
}

// AgainstBase is where a run's record first differs from the base's.
type AgainstBase struct {
	Run string `json:"run_id"`
	// Divergence is null if all that both runs recorded is equal.
	Divergence *Divergence `json:"first_difference"`
	// Equal is the number of steps that both runs finished and that are equal.
	Equal int `json:"equal_steps"`
}

// Read compares runs of one record. Runs that are in progress are compared as far as they have come.
func Read(ctx context.Context, record *analysis.Record, names []string) (*Comparison, error) {
	if err := check(names); err != nil {
		return nil, err
	}
	c := &Comparison{}
	views := make([]*analysis.Visible, len(names))
	overviews, origins := make([]analysis.Overview, len(names)), make([]analysis.Origin, len(names))
	for i, name := range names {
		var err error
		if views[i], err = record.Visible(ctx, name); err != nil {
			return nil, err
		}
		if overviews[i], err = record.Overview(ctx, name); err != nil {
			return nil, err
		}
		if origins[i], err = views[i].Origin(ctx); err != nil {
			return nil, err
		}
		c.Runs = append(c.Runs, overviews[i].Run)
	}
	var err error
	if c.Recipe, err = recipeOf(origins); err != nil {
		return nil, err
	}
	c.Made = MadeBy(origins)
	if c.Steps, err = steps(ctx, views, overviews); err != nil {
		return nil, err
	}
	if c.Evaluations, err = evaluations(ctx, views); err != nil {
		return nil, err
	}
	for i, v := range views[1:] {
		against := AgainstBase{Run: names[i+1]}
		if against.Divergence, against.Equal, err = diverge(ctx, views[0], v); err != nil {
			return nil, err
		}
		c.Divergences = append(c.Divergences, against)
	}
	return c, nil
}

// check refuses a choice of runs that cannot be compared.
func check(names []string) error {
	if len(names) < 2 {
		return badinput.Errorf("name two runs or more to compare them")
	}
	if len(names) > mostRuns {
		return badinput.Errorf("at most %d runs can be compared at once, got %d", mostRuns, len(names))
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return badinput.Errorf("run %s is named twice; name different runs", name)
		}
		seen[name] = true
	}
	return nil
}
