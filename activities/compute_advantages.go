package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// ComputeAdvantages makes the training batch: the kept trajectories' tokens and their advantages.
type ComputeAdvantages struct{ *Deps }

// Execute writes each kept row once, with its advantage multiplied by its weight.
func (a ComputeAdvantages) Execute(ctx context.Context, e *Env, in api.StageInput) (api.Advantages, error) {
	out := api.Advantages{}
	s := spec{scope: in.Scope, stage: schema.StageAdvantage, turn: -1, shard: -1}
	for _, stage := range []string{schema.StageRollout, schema.StageReward, schema.StageResample,
		schema.StageLogprobs} {
		s.inputs = append(s.inputs, in.Made.All(stage)...) // it finds its other inputs itself
	}
	err := execute(ctx, a.Deps, e, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.Recipes.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		rows, err := a.batch(ctx, w, in, recipe)
		if err != nil {
			return err
		}
		out.Rows, out.Tokens = len(rows), batch.Tokens(rows)
		w.timing.Rows, w.timing.Tokens = int64(out.Rows), out.Tokens
		schema.SortBatch(rows)
		data, err := schema.EncodeBatch(rows)
		if err != nil {
			return err
		}
		return w.shard(ctx, schema.Batch, data, len(rows))
	})
	return out, err
}

// batch fetches what the rows are made from and makes them.
func (a ComputeAdvantages) batch(ctx context.Context, w *draft, in api.StageInput,
	recipe *recipes.Recipe) ([]schema.BatchRow, error) {
	kept, err := a.kept(ctx, in)
	if err != nil {
		return nil, err
	}
	if recipe.Advantage.SharesPrefixes() {
		branches, err := read[schema.BranchRow](ctx, a.records, in.Made.All(schema.StageRollout)...)
		if err != nil {
			return nil, err
		}
		batch.JoinLineage(kept, schema.LineageOf(branches))
	}
	if recipe.Outputs().Any() {
		if err := a.joinOutputs(ctx, in, recipe, kept); err != nil {
			return nil, err
		}
	}
	if recipe.Environment.Declaration().Interactive {
		if err := a.joinTransitions(ctx, w, in, kept); err != nil {
			return nil, err
		}
	}
	beta, err := a.klCoefficient(ctx, w, in.Scope, recipe)
	if err != nil {
		return nil, err
	}
	rows, stats, err := batch.Estimate(recipe, kept, beta)
	w.stats = stats
	return rows, err
}

// kept fetches the kept trajectories.
func (a ComputeAdvantages) kept(ctx context.Context, in api.StageInput) ([]batch.Sequence, error) {
	selection, err := read[schema.SelectionRow](ctx, a.records, in.Made.One(schema.StageResample))
	if err != nil {
		return nil, err
	}
	rewards, err := read[schema.RewardRow](ctx, a.records, in.Made.One(schema.StageReward))
	if err != nil {
		return nil, err
	}
	turns, err := wholeTurns(ctx, a.records, in.Made.All(schema.StageRollout)...)
	if err != nil {
		return nil, err
	}
	return batch.Kept(selection, rewards, turns)
}

// joinOutputs adds the models' outputs to the tokens.
func (a ComputeAdvantages) joinOutputs(ctx context.Context, in api.StageInput, recipe *recipes.Recipe,
	kept []batch.Sequence) error {
	if in.Made.One(schema.StageLogprobs) == (schema.Ref{}) {
		return refuse(api.FailRefused, "the recipe needs token outputs, and step %d of run %s has committed none",
			in.Step, in.Run)
	}
	outputs, err := read[schema.TokenOutputsRow](ctx, a.records, in.Made.One(schema.StageLogprobs))
	if err != nil {
		return err
	}
	return batch.JoinOutputs(kept, outputs, recipe)
}

// joinTransitions adds the transitions of kept trajectories to their turns; they become inputs of the stage.
func (a ComputeAdvantages) joinTransitions(ctx context.Context, w *draft, in api.StageInput,
	kept []batch.Sequence) error {
	assembled, err := a.madeFrom(ctx, in.Made.One(schema.StageReward), schema.StageAssemble)
	if err != nil {
		return err
	}
	rows, made, err := a.transitions(ctx, assembled...)
	if err != nil {
		return err
	}
	w.manifest.Inputs = append(w.manifest.Inputs, made...)
	return batch.JoinTransitions(kept, rows)
}
