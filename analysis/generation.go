package analysis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// ErrNoGeneration means that the run has committed nothing in that generation.
var ErrNoGeneration = errors.New("no such generation in the record")

// Generation selects the generations to read: Heads (the zero value), AllGenerations, or one by its number. A number
// selects, for each stage of a step, that generation if the stage has it, and otherwise the one that the head names.
type Generation int

const (
	// Heads selects what the steps' updates consumed.
	Heads Generation = 0
	// AllGenerations also selects what replays made.
	AllGenerations Generation = -1
)

// Numbered is the generation n ≥ 0.
func Numbered(n int) Generation { return Generation(n + 1) }

// Number is the inverse of Numbered; ok is false for Heads and AllGenerations.
func (g Generation) Number() (n int, ok bool) { return int(g) - 1, g > 0 }

// ParseGeneration reads "heads", "all" or a number.
func ParseGeneration(text string) (Generation, error) {
	switch text {
	case "heads":
		return Heads, nil
	case "all":
		return AllGenerations, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || strconv.Itoa(n) != text {
		return Heads, fmt.Errorf("must be heads, all or a generation's number, got %q", text)
	}
	return Numbered(n), nil
}

// String is the inverse of ParseGeneration.
func (g Generation) String() string {
	switch g {
	case Heads:
		return "heads"
	case AllGenerations:
		return "all"
	}
	n, _ := g.Number()
	return strconv.Itoa(n)
}

// WithGeneration returns a reader of the selected generations.
func (r *Record) WithGeneration(g Generation) *Record {
	with := *r
	with.gen = g
	return &with
}

// Generation is the selection of the reader.
func (r *Record) Generation() Generation { return r.gen }

// made identifies what a stage of a step committed in one generation.
type made struct {
	step  int
	stage string
	gen   int
}

// readGenerations finds the stage manifests that heads do not name, if they are selected.
func (v *Visible) readGenerations(ctx context.Context) error {
	if v.record.gen == Heads {
		return nil
	}
	places, err := v.listed()
	if err != nil {
		return err
	}
	var outside []schema.Place
	for _, p := range places {
		if v.outside(p) {
			outside = append(outside, p)
		}
	}
	slices.SortStableFunc(outside, func(a, b schema.Place) int { return a.Turn - b.Turn })
	_, refs, err := v.record.lookups(ctx, outside)
	if err != nil {
		return err
	}
	v.replayed = map[made][]schema.Ref{}
	for i, p := range outside {
		at := made{mustStep(p.Step), p.Stage, p.Gen}
		v.replayed[at] = append(v.replayed[at], refs[i])
	}
	return nil
}

// outside reports whether a manifest is a stage manifest of a finished step that the step's head does not name.
func (v *Visible) outside(p schema.Place) bool {
	step, numbered := p.StepNumber()
	i, done := slices.BinarySearch(v.steps, step)
	if !numbered || !done || p.Shard >= 0 || visibleWithoutHead(p) || p.Stage == schema.StageCompact ||
		p.Stage == schema.StageEnd {
		return false
	}
	gen, named := v.heads[i].Generations[p.Stage]
	return !named || gen != p.Gen
}

// chosen returns the manifests of a head's stage in the selected generations.
func (v *Visible) chosen(h schema.Head, stage string) []schema.Ref {
	named, step := h.Stages[stage], mustStep(h.Step)
	switch v.record.gen {
	case Heads:
		return named
	case AllGenerations:
		all := slices.Clone(named)
		for _, g := range v.Replays(step) {
			all = append(all, v.replayed[made{step, stage, g}]...)
		}
		return all
	}
	n, _ := v.record.gen.Number()
	if instead := v.replayed[made{step, stage, n}]; len(instead) > 0 {
		return instead
	}
	return named
}

// Replays lists the generations of a step that its head does not name, in order; of every step
// when step is NoStep. The reader must select AllGenerations.
func (v *Visible) Replays(step int) []int {
	found := map[int]bool{}
	for at := range v.replayed {
		if step == NoStep || at.step == step {
			found[at.gen] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// checkGeneration refuses the number of a generation that the run does not have.
func (v *Visible) checkGeneration() error {
	n, numbered := v.record.gen.Number()
	if !numbered {
		return nil
	}
	places, err := v.listed()
	if err != nil {
		return err
	}
	there := generationsOf(places)
	if slices.Contains(there, n) {
		return nil
	}
	return LacksGeneration(v.run, n, there)
}

func generationsOf(places []schema.Place) []int {
	found := map[int]bool{}
	for _, p := range places {
		found[p.Gen] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// LacksGeneration is the error about a generation that a run lacks; have lists those that it has.
func LacksGeneration(run string, gen int, have []int) error {
	return fmt.Errorf("%w: generation %d of run %s; it has %s", ErrNoGeneration, gen, run, generationWords(have))
}

func generationWords(gens []int) string {
	words := make([]string, len(gens))
	for i, g := range gens {
		words[i] = strconv.Itoa(g)
	}
	return strings.Join(words, ", ")
}

// inGeneration keeps the selected generations of manifests that need no head: generation 0, all, or the numbered one
// where there is one.
func inGeneration(g Generation, places []schema.Place) []schema.Place {
	if g == AllGenerations {
		return places
	}
	n, _ := g.Number()
	n = max(n, 0)
	there := map[schema.Place]bool{}
	for _, p := range places {
		there[p] = true
	}
	return slices.DeleteFunc(slices.Clone(places), func(p schema.Place) bool {
		return p.Gen != n && (p.Gen != 0 || there[p.WithGen(n)])
	})
}

// StepsOf lists the finished steps that have something in a generation. The reader must select that generation.
func (v *Visible) StepsOf(gen int) []int {
	var steps []int
	for i, h := range v.heads {
		named := slices.Contains(slices.Collect(maps.Values(h.Generations)), gen)
		if named || slices.Contains(v.Replays(v.steps[i]), gen) {
			steps = append(steps, v.steps[i])
		}
	}
	return steps
}
