package experiment

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// namePattern is what names of experiments, arms and outcomes are made of.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// mostTrials bounds an experiment: its workflow holds all trials in its state.
const mostTrials = 500

// check finds the faults of a file whose entries could be read.
func (f *File) check(r *reader) {
	if !namePattern.MatchString(f.Name) || strings.ToLower(f.Name) != f.Name {
		r.failAt("name", "must be lower-case letters, digits, dots, dashes and underscores, got %q", f.Name)
	}
	if f.Parallel < 1 {
		r.failAt("parallel", "must be ≥ 1, got %d", f.Parallel)
	}
	f.checkSeeds(r)
	for _, a := range f.Arms {
		at := "arms." + a.Name
		if !namePattern.MatchString(a.Name) && a.Name != a.Recipe {
			r.failAt(at, "must be letters, digits, dots, dashes, plus signs and underscores")
		}
		if a.Recipe == "" {
			r.failAt(at, "name a recipe, for all arms or for this one")
		}
	}
	if n := len(f.Arms) * len(f.Points) * len(f.Seeds); n > mostTrials {
		r.failAt("seeds", "make %d trials of %d arms at %d points; at most %d can be compared", n, len(f.Arms),
			len(f.Points), mostTrials)
	}
	f.checkOutcomes(r)
	f.checkComparisons(r)
	f.checkStop(r)
	if !slices.Contains(axes(), f.Budget.Axis) {
		r.failAt("budget.axis", "must be one of %s, got %q", strings.Join(axes(), ", "), f.Budget.Axis)
	}
	if f.Budget.Amount < 0 {
		r.failAt("budget.amount", "must be ≥ 0, got %g", f.Budget.Amount)
	}
}

func (f *File) checkSeeds(r *reader) {
	if len(f.Seeds) == 0 {
		r.failAt("seeds", "give a list of seeds, or how many")
	}
	for i, s := range f.Seeds {
		if slices.Contains(f.Seeds[:i], s) {
			r.failAt("seeds", "%d is there twice", s)
		}
	}
}

func (f *File) checkOutcomes(r *reader) {
	for i, o := range f.Outcomes {
		at := fmt.Sprintf("outcomes[%d]", i)
		if !namePattern.MatchString(o.Name) {
			r.failAt(at+".name", "must be letters, digits, dots, dashes and underscores, got %q", o.Name)
		}
		if slices.ContainsFunc(f.Outcomes[:i], func(other Outcome) bool { return other.Name == o.Name }) {
			r.failAt(at, "%s is there twice", o.Name)
		}
		if o.SQL == "" && o.Metric == "" {
			r.failAt(at, "give sql, which returns the columns step and value, or of: another outcome")
		}
		if _, ok := reductions[o.Reduce]; !ok {
			r.failAt(at+".reduce", "must be one of %s, got %q", strings.Join(reductionNames(), ", "), o.Reduce)
		}
	}
}

func (f *File) checkComparisons(r *reader) {
	known := map[string]bool{}
	for _, a := range f.Arms {
		known[a.Name] = true
	}
	for i, c := range f.Comparisons {
		at := fmt.Sprintf("comparisons[%d]", i)
		if !known[c.Arm] {
			r.failAt(at+".arm", "there is no arm %q", c.Arm)
		}
		if !known[c.Against] {
			r.failAt(at+".against", "there is no arm %q", c.Against)
		}
		if c.Arm == c.Against {
			r.failAt(at, "compares %s with itself", c.Arm)
		}
		for _, name := range c.Outcomes {
			if _, ok := f.outcome(name); !ok {
				r.failAt(at+".outcomes", "%s is not among the experiment's outcomes", name)
			}
		}
	}
}

func (f *File) checkStop(r *reader) {
	s := f.Stop
	if (s.By != "" || s.Collapse != "") != (len(s.At) > 0) {
		r.failAt("stop", "give at, and halve or collapse")
	}
	for i, step := range s.At {
		if step < 1 || i > 0 && step <= s.At[i-1] {
			r.failAt("stop.at", "must be steps ≥ 1 that grow, got %v", s.At)
		}
	}
	if s.Keep < 0 || s.Keep >= 1 {
		r.failAt("stop.halve.keep", "must be a share between 0 and 1, got %g", s.Keep)
	}
	for _, by := range [][2]string{{"stop.halve.by", s.By}, {"stop.collapse.of", s.Collapse}} {
		if _, ok := f.outcome(by[1]); by[1] != "" && !ok {
			r.failAt(by[0], "%s is not among the experiment's outcomes", by[1])
		}
	}
}
