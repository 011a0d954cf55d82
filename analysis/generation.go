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

// ErrNoGeneration: nothing of the run was committed in that generation.
var ErrNoGeneration = errors.New("no such generation in the record")

// Generation says which generations are read: Heads (the zero value), AllGenerations, or one by its
// number, which means each stage of a step in that generation where it has one, and otherwise as
// the head names it.
type Generation int

const (
	// Heads reads what the steps' updates consumed.
	Heads Generation = 0
	// AllGenerations reads, beside that, what replays made.
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

// WithGeneration returns a reader of other generations than those that heads name.
func (r *Record) WithGeneration(g Generation) *Record {
	with := *r
	with.gen = g
	return &with
}

// made is what a step's stage committed in one generation.
type made struct {
	step  int
	stage string
	gen   int
}

// readGenerations finds the stage manifests that heads do not name, where they are to be read.
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
	refs := make([]schema.Ref, len(outside))
	if err := each(ctx, fetches, len(outside), func(ctx context.Context, i int) (err error) {
		_, refs[i], _, err = v.record.writer.Lookup(ctx, outside[i])
		return err
	}); err != nil {
		return err
	}
	v.replayed = map[made][]schema.Ref{}
	for i, p := range outside {
		at := made{mustStep(p.Step), p.Stage, p.Gen}
		v.replayed[at] = append(v.replayed[at], refs[i])
	}
	return nil
}

// outside reports a stage manifest of a finished step, of a stage that its head names in another
// generation or not at all.
func (v *Visible) outside(p schema.Place) bool {
	step, numbered := p.StepNumber()
	i := slices.Index(v.steps, step)
	if !numbered || i < 0 || p.Shard >= 0 || p.Stage == schema.StageEvaluate || strings.HasPrefix(p.Stage, timingsPrefix) {
		return false
	}
	gen, named := v.heads[i].Generations[p.Stage]
	return !named || gen != p.Gen
}

// chosen are the manifests of a head's stage in the generations that are read.
func (v *Visible) chosen(h schema.Head, stage string) []schema.Ref {
	named, step := h.Stages[stage], mustStep(h.Step)
	switch v.record.gen {
	case Heads:
		return named
	case AllGenerations:
		all := slices.Clone(named)
		for _, g := range v.gens(step) {
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

// gens are the generations of a step's stages that its head does not name, in order.
func (v *Visible) gens(step int) []int {
	found := map[int]bool{}
	for at := range v.replayed {
		if at.step == step {
			found[at.gen] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Replays lists the generations of a step that its head does not name, in order; of every step
// when step is NoStep. The reader must be one of AllGenerations.
func (v *Visible) Replays(step int) []int {
	if step != NoStep {
		return v.gens(step)
	}
	found := map[int]bool{}
	for at := range v.replayed {
		found[at.gen] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// checkGeneration refuses a number in which nothing of the run was committed.
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
	return fmt.Errorf("%w: generation %d of run %s; there %s", ErrNoGeneration, n, v.run, generationWords(there))
}

func generationsOf(places []schema.Place) []int {
	found := map[int]bool{}
	for _, p := range places {
		found[p.Gen] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func generationWords(gens []int) string {
	words := make([]string, len(gens))
	for i, g := range gens {
		words[i] = strconv.Itoa(g)
	}
	if len(words) == 1 {
		return "is " + words[0]
	}
	return "are " + strings.Join(words, ", ")
}

// inGeneration keeps, of the manifests that count without a head, those of the generations that
// are read: generation 0, all, or a number's where it has one.
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

// StepsOf lists the finished steps of which something is of a generation. The reader must be one of
// that generation.
func (v *Visible) StepsOf(gen int) []int {
	var steps []int
	for i, h := range v.heads {
		named := slices.Contains(slices.Collect(maps.Values(h.Generations)), gen)
		if named || slices.Contains(v.gens(v.steps[i]), gen) {
			steps = append(steps, v.steps[i])
		}
	}
	return steps
}
