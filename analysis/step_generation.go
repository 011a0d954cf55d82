package analysis

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// noGeneration is the generation of a stage that a step does not have.
const noGeneration = -1

// StepGeneration holds one generation of the stages of a step that can be replayed.
type StepGeneration struct {
	Gen       int
	Rewards   []schema.RewardRow
	Selection []schema.SelectionRow
	Batch     []schema.BatchRow
	// From is the generation that each stage's rows belong to: Gen, the head's if Gen does not have the stage, or
	// noGeneration.
	From map[string]int
}

// StepGeneration reads a generation of a step. Stages that the generation lacks are the step's own: those that the head
// names, or those of generation 0 if the step has no head.
func (r *Record) StepGeneration(ctx context.Context, run string, step, gen int) (*StepGeneration, error) {
	if _, err := r.Visible(ctx, run); err != nil {
		return nil, err
	}
	head, _, found, err := r.writer.Head(ctx, run, strconv.Itoa(step))
	if err != nil {
		return nil, err
	}
	if found {
		run = head.Owner()
	}
	if err := r.hasGeneration(ctx, run, step, gen); err != nil {
		return nil, err
	}
	g, made := &StepGeneration{Gen: gen, From: map[string]int{}}, map[string][]schema.Manifest{}
	for _, stage := range []string{schema.StageReward, schema.StageResample, schema.StageAdvantage} {
		g.From[stage] = noGeneration
		m, found, err := r.stageAt(ctx, schema.At(run, step, stage), gen, head.Generations[stage])
		if err != nil {
			return nil, err
		}
		if found {
			g.From[stage], made[stage] = m.Gen, []schema.Manifest{m}
		}
	}
	if g.Rewards, err = commit.Rows[schema.RewardRow](ctx, r.writer, made[schema.StageReward]...); err != nil {
		return nil, err
	}
	if g.Selection, err = commit.Rows[schema.SelectionRow](ctx, r.writer, made[schema.StageResample]...); err != nil {
		return nil, err
	}
	for _, m := range made[schema.StageAdvantage] {
		g.Batch, err = commit.Batch(ctx, r.writer, m)
	}
	return g, err
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
	places, err := r.places(ctx, fmt.Sprintf("%sstep=%d/", schema.ManifestsPrefix(run), step))
	if err != nil {
		return err
	}
	gens := generationsOf(places)
	switch {
	case len(gens) == 0:
		return fmt.Errorf("%w: step %d of run %s has committed nothing", ErrNoStep, step, run)
	case !slices.Contains(gens, gen):
		return fmt.Errorf("%w: step %d of run %s has no generation %d; it has %s", ErrNoGeneration, step, run, gen,
			generationWords(gens))
	}
	return nil
}
