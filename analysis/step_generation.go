package analysis

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// NoGeneration is the generation of a stage that a step does not have.
const NoGeneration = -1

// StepGeneration holds one generation of the stages of a step that can be replayed.
type StepGeneration struct {
	Gen       int
	Rewards   []schema.RewardRow
	Selection []schema.SelectionRow
	Batch     []schema.BatchRow
	// From is the generation that each stage's rows belong to: Gen, the head's if Gen does not have the stage, or
	// NoGeneration.
	From map[string]int
}

// StepGeneration reads a generation of a step. Stages that the generation lacks are the step's own: those that the head
// names, or those of generation 0 if the step has no head.
func (r *Record) StepGeneration(ctx context.Context, run string, step, gen int) (*StepGeneration, error) {
	if _, err := r.Visible(ctx, run); err != nil {
		return nil, err
	}
	if err := r.hasGeneration(ctx, run, step, gen); err != nil {
		return nil, err
	}
	head, _, _, err := r.writer.Head(ctx, run, strconv.Itoa(step))
	if err != nil {
		return nil, err
	}
	g := &StepGeneration{Gen: gen, From: map[string]int{}}
	for _, read := range []struct {
		stage string
		into  func(schema.Manifest) error
	}{
		{schema.StageReward, func(m schema.Manifest) (err error) {
			g.Rewards, err = commit.Rows[schema.RewardRow](ctx, r.writer, m)
			return err
		}},
		{schema.StageResample, func(m schema.Manifest) (err error) {
			g.Selection, err = commit.Rows[schema.SelectionRow](ctx, r.writer, m)
			return err
		}},
		{schema.StageAdvantage, func(m schema.Manifest) (err error) {
			g.Batch, err = commit.Batch(ctx, r.writer, m)
			return err
		}},
	} {
		g.From[read.stage] = NoGeneration
		m, found, err := r.stageAt(ctx, schema.At(run, step, read.stage), gen, head.Generations[read.stage])
		if found && err == nil {
			g.From[read.stage] = m.Gen
			err = read.into(m)
		}
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// stageAt returns a stage's manifest in a generation, or in another if the first has none.
func (r *Record) stageAt(ctx context.Context, place schema.Place, gen, other int) (schema.Manifest, bool, error) {
	m, _, found, err := r.writer.Lookup(ctx, place.WithGen(gen))
	if err != nil || found || gen == other {
		return m, found, err
	}
	m, _, found, err = r.writer.Lookup(ctx, place.WithGen(other))
	return m, found, err
}

// hasGeneration refuses a step without committed stages, and a generation that the step does not have.
func (r *Record) hasGeneration(ctx context.Context, run string, step, gen int) error {
	listed, err := r.objects.List(ctx, fmt.Sprintf("%sstep=%d/", schema.ManifestsPrefix(run), step))
	if err != nil {
		return fmt.Errorf("list manifests of run %s step %d: %w", run, step, err)
	}
	var gens []int
	for _, o := range listed {
		if p, err := schema.ParseManifestKey(o.Key); err == nil && !slices.Contains(gens, p.Gen) {
			gens = append(gens, p.Gen)
		}
	}
	slices.Sort(gens)
	switch {
	case len(gens) == 0:
		return fmt.Errorf("%w: step %d of run %s has committed nothing", ErrNoStep, step, run)
	case !slices.Contains(gens, gen):
		return fmt.Errorf("%w: step %d of run %s has no generation %d; it has %s", ErrNoGeneration, step, run, gen,
			generationWords(gens))
	}
	return nil
}
