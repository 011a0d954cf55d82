package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// Trial is a run of an experiment.
type Trial struct {
	Run    string // its name: two trials of one recipe, seed and program are one run
	Arm    string // with its point of the grid
	Seed   uint64
	Recipe string // a built-in recipe, or a key of Sources
	Set    []string
	// Resolved is the recipe with its settings and seed.
	Resolved *recipes.Resolved
}

// Sources are the texts of recipes that are files, by the names that the arms give them.
type Sources map[string]string

// digits is how much of the identity's digest a run's name has.
const digits = 10

// label names an arm at a point of the grid.
func (p point) label(arm string) string { return strings.TrimSpace(arm + " " + p.Name) }

// Recipes lists the recipes of the arms that are files, each once.
func (f *File) Recipes() (out []string) {
	seen := map[string]bool{}
	for _, a := range f.Arms {
		if _, ok := recipes.Source(a.Recipe); !ok && !seen[a.Recipe] {
			out, seen[a.Recipe] = append(out, a.Recipe), true
		}
	}
	return out
}

// Expand lists the trials, by seed, point and arm, so that the trials of a comparison come together. code is the digest
// of the program that runs them. The error is of type recipes.Problems.
func (f *File) Expand(sources Sources, code string) ([]Trial, error) {
	r := &reader{file: f}
	var out []Trial
	arms := map[string]string{} // by run
	for _, seed := range f.Seeds {
		for _, p := range f.Points {
			for _, a := range f.Arms {
				t := Trial{Arm: p.label(a.Name), Seed: seed, Recipe: a.Recipe, Set: slices.Concat(a.Set, p.Set)}
				if err := t.resolve(sources); err != nil {
					r.blame("arms."+a.Name, err)
					continue
				}
				f.checkHolds(r, a.Name, t)
				t.Run = f.runOf(t, code)
				if same, taken := arms[t.Run]; taken {
					r.failAt("arms."+a.Name, "%s is the same recipe as %s", t.Arm, same)
				}
				arms[t.Run] = t.Arm
				out = append(out, t)
			}
		}
		if len(r.problems) > 0 { // another seed has the same ones
			return nil, r.problems
		}
	}
	return out, nil
}

// checkHolds refuses a trial that has no evaluation at the holds at which the stop rule reads one.
func (f *File) checkHolds(r *reader, arm string, t Trial) {
	every := t.Resolved.Recipe.Evaluation.Every
	for _, name := range []string{f.Stop.By, f.Stop.Collapse} {
		o, _ := f.outcome(name)
		if !strings.HasPrefix(o.Metric, "eval/") {
			continue
		}
		for _, step := range f.Stop.At {
			if step < t.Resolved.Recipe.Steps && (every == 0 || step%every != 0) {
				r.failAt("stop.at", "arm %s is not evaluated after step %d, which %s reads: set evaluation.every", arm,
					step, name)
				return
			}
		}
	}
}

// blame adds the faults of an arm's recipe at the arm's line.
func (r *reader) blame(at string, err error) {
	var all recipes.Problems
	if !errors.As(err, &all) {
		r.failAt(at, "%v", err)
	}
	for _, p := range all {
		r.failAt(at, "%s", p.Error())
	}
}

// resolve resolves the trial's recipe, and refuses one that cannot be trained.
func (t *Trial) resolve(sources Sources) (err error) {
	if t.Resolved, err = recipes.Resolve(t.Recipe, sources[t.Recipe], t.Set, &t.Seed, nil); err != nil {
		return err
	}
	r := &t.Resolved.Recipe
	if r.Environment.Imported() {
		return fmt.Errorf("environment.name: %s holds imported trajectories, which cannot be trained on",
			r.Environment.Name)
	}
	for _, missing := range [][]string{r.Planned(), r.Unset(), r.Idle()} {
		if len(missing) > 0 {
			return errors.New(strings.Join(missing, "; "))
		}
	}
	return nil
}

// runOf names a trial's run after its recipe, its seed and the digest of its identity. The recipe's digest covers the
// seed. The program is part of the identity if the experiment says so.
func (f *File) runOf(t Trial, code string) string {
	identity := t.Resolved.Digest
	if f.Program {
		identity = schema.Digest([]byte(identity + " " + code))
	}
	return fmt.Sprintf("trial-%.60s-s%d-%.*s", strings.ToLower(t.Resolved.Recipe.Name), t.Seed, digits, identity)
}

// Holds lists the steps after which trials wait for the stop rule, and 0 for their ends.
func (f *File) Holds() []int { return slices.Concat(f.Stop.At, []int{0}) }
