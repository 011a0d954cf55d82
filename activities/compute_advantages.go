package activities

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/replaying"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// ComputeAdvantages makes the training batch: the kept trajectories' tokens and their advantages.
type ComputeAdvantages struct{ *Deps }

// Execute writes each kept row once, with its advantage multiplied by its weight.
func (a ComputeAdvantages) Execute(ctx context.Context, e *Env, in api.AdvantageInput) (api.Advantages, error) {
	out := api.Advantages{}
	inputs := append(slices.Clone(in.Turns), in.Rewards, in.Selection)
	if in.Outputs != (schema.Ref{}) {
		inputs = append(inputs, in.Outputs)
	}
	s := spec{scope: in.Scope, stage: api.StageAdvantage, turn: -1, shard: -1, inputs: inputs}
	err := execute(ctx, a.Deps, e, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
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
func (a ComputeAdvantages) batch(ctx context.Context, w *draft, in api.AdvantageInput,
	recipe *recipes.Recipe) ([]schema.BatchRow, error) {
	kept, err := a.kept(ctx, in)
	if err != nil {
		return nil, err
	}
	if recipe.Advantage.SharesPrefixes() {
		branches, err := read[schema.BranchRow](ctx, a.records, in.Turns...)
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
func (a ComputeAdvantages) kept(ctx context.Context, in api.AdvantageInput) ([]batch.Sequence, error) {
	selection, err := read[schema.SelectionRow](ctx, a.records, in.Selection)
	if err != nil {
		return nil, err
	}
	rewards, err := read[schema.RewardRow](ctx, a.records, in.Rewards)
	if err != nil {
		return nil, err
	}
	turns, err := wholeTurns(ctx, a.records, in.Turns...)
	if err != nil {
		return nil, err
	}
	return batch.Kept(selection, rewards, turns)
}

// joinOutputs adds the models' outputs to the tokens.
func (a ComputeAdvantages) joinOutputs(ctx context.Context, in api.AdvantageInput, recipe *recipes.Recipe,
	kept []batch.Sequence) error {
	if in.Outputs == (schema.Ref{}) {
		return refuse(api.FailRefused, "the recipe needs token outputs, and step %d of run %s has committed none",
			in.Step, in.Run)
	}
	outputs, err := read[schema.TokenOutputsRow](ctx, a.records, in.Outputs)
	if err != nil {
		return err
	}
	return batch.JoinOutputs(kept, outputs, recipe)
}

// joinTransitions adds the transitions of kept trajectories to their turns; they become inputs of the stage.
func (a ComputeAdvantages) joinTransitions(ctx context.Context, w *draft, in api.AdvantageInput,
	kept []batch.Sequence) error {
	assembled, err := a.madeFrom(ctx, in.Rewards, api.StageAssemble)
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

func (a ComputeAdvantages) again(
	ctx context.Context, scope api.Scope, _ schema.Manifest, inputs []schema.Ref,
) (schema.Ref, error) {
	if len(inputs) < 3 {
		return schema.Ref{}, errOtherInputs
	}
	out, err := a.Execute(ctx, &Env{}, advantageInput(scope, inputs))
	return out.Manifest, err
}

// sources are the step's turns, its selection and, if the step has them, its token outputs.
func (a ComputeAdvantages) sources(_ context.Context, p *replaying.Plan, out *api.ReplayPrepared) error {
	turns, err := p.Made.All(api.StageRollout, api.StageAdvantage)
	if err != nil {
		return err
	}
	for _, ref := range turns {
		out.Made = append(out.Made, api.StageRef{Stage: api.StageRollout, Ref: ref})
	}
	p.Read(schema.Turns, turns...)
	if len(p.Made.Refs[api.StageLogprobs]) > 0 {
		if err := findOne(p, out, api.StageLogprobs, api.StageAdvantage); err != nil {
			return err
		}
	}
	if p.Has(api.StageResample) {
		return nil
	}
	return findOne(p, out, api.StageResample, api.StageAdvantage)
}

// advantageInput sorts a stage's inputs by the stages that made them. The activity finds its other inputs itself.
func advantageInput(scope api.Scope, inputs []schema.Ref) api.AdvantageInput {
	in := api.AdvantageInput{Scope: scope}
	for _, ref := range inputs {
		switch {
		case isOfStage(ref, api.StageRollout):
			in.Turns = append(in.Turns, ref)
		case isOfStage(ref, api.StageReward):
			in.Rewards = ref
		case isOfStage(ref, api.StageResample):
			in.Selection = ref
		case isOfStage(ref, api.StageLogprobs):
			in.Outputs = ref
		}
	}
	return in
}
