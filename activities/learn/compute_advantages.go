package learn

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// ComputeAdvantages makes the training batch: the kept trajectories' tokens and their advantages.
type ComputeAdvantages struct{ *stage.Worker }

// Execute writes each kept row once, with its advantage multiplied by its weight.
func (a ComputeAdvantages) Execute(ctx context.Context, e *stage.Env, in api.StageInput) (out api.Advantages,
	err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageAdvantage, Turn: -1, Shard: -1}
	for _, stage := range []string{schema.StageRollout, schema.StageReward, schema.StageResample,
		schema.StageLogprobs} {
		s.Inputs = append(s.Inputs, in.Made.All(stage)...) // it finds its other inputs itself
	}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		rows, err := a.batch(ctx, w, in)
		if err != nil {
			return err
		}
		out.Rows, out.Tokens = len(rows), batch.Tokens(rows)
		w.Timing.Rows, w.Timing.Tokens = int64(out.Rows), out.Tokens
		schema.SortBatch(rows)
		data, err := schema.EncodeBatch(rows)
		if err != nil {
			return err
		}
		return w.Shard(ctx, schema.Batch, data, len(rows))
	})
	return out, err
}

// batch fetches what the rows are made from and makes them.
func (a ComputeAdvantages) batch(ctx context.Context, w *stage.Draft, in api.StageInput) ([]schema.BatchRow, error) {
	kept, err := a.kept(ctx, in)
	if err != nil {
		return nil, err
	}
	if w.Recipe.Advantage.SharesPrefixes() {
		branches, err := record.Read[schema.BranchRow](ctx, a.Records, in.Made.All(schema.StageRollout)...)
		if err != nil {
			return nil, err
		}
		batch.JoinLineage(kept, schema.LineageOf(branches))
	}
	if w.Recipe.Outputs().Any() {
		if err := a.joinOutputs(ctx, in, w.Recipe, kept); err != nil {
			return nil, err
		}
	}
	if w.Recipe.Environment.Declaration().Interactive {
		if err := a.joinTransitions(ctx, w, in, kept); err != nil {
			return nil, err
		}
	}
	beta, err := klCoefficient(ctx, w, in.Scope)
	if err != nil {
		return nil, err
	}
	rows, stats, err := batch.Estimate(w.Recipe, kept, beta)
	w.Stats = stats
	return rows, err
}

// kept fetches the kept trajectories.
func (a ComputeAdvantages) kept(ctx context.Context, in api.StageInput) ([]batch.Sequence, error) {
	selection, err := record.Read[schema.SelectionRow](ctx, a.Records, in.Made.One(schema.StageResample))
	if err != nil {
		return nil, err
	}
	rewards, err := record.Read[schema.RewardRow](ctx, a.Records, in.Made.One(schema.StageReward))
	if err != nil {
		return nil, err
	}
	turns, err := record.WholeTurns(ctx, a.Records, in.Made.All(schema.StageRollout)...)
	if err != nil {
		return nil, err
	}
	return batch.Kept(selection, rewards, turns)
}

// joinOutputs adds the models' outputs to the tokens.
func (a ComputeAdvantages) joinOutputs(ctx context.Context, in api.StageInput, recipe *recipes.Recipe,
	kept []batch.Sequence) error {
	if in.Made.One(schema.StageLogprobs) == (schema.Ref{}) {
		return refusal.Unusablef("the recipe needs token outputs, and step %d of run %s has committed "+
			"none", in.Step, in.Run)
	}
	outputs, err := record.Read[schema.TokenOutputsRow](ctx, a.Records, in.Made.One(schema.StageLogprobs))
	if err != nil {
		return err
	}
	return batch.JoinOutputs(kept, outputs, recipe)
}

// joinTransitions adds the transitions of kept trajectories to their turns; they become inputs of the stage.
func (a ComputeAdvantages) joinTransitions(ctx context.Context, w *stage.Draft, in api.StageInput,
	kept []batch.Sequence) error {
	assembled, err := a.MadeFrom(ctx, in.Made.One(schema.StageReward), schema.StageAssemble)
	if err != nil {
		return err
	}
	rows, made, err := a.Transitions(ctx, assembled...)
	if err != nil {
		return err
	}
	w.Manifest.Inputs = append(w.Manifest.Inputs, made...)
	return batch.JoinTransitions(kept, rows)
}

// klCoefficient is the coefficient of a step's penalty, if its batch needs one. An adaptive coefficient follows from
// what the previous step has committed, which becomes an input of the stage.
func klCoefficient(ctx context.Context, w *stage.Draft, scope api.Scope) (float64, error) {
	beta, adapted := batch.StartKL(w.Recipe.Loss.KL(), scope.Step)
	if !adapted {
		return beta, nil
	}
	head, _, found, err := w.Worker.Record.Head(ctx, scope.Run, strconv.Itoa(scope.Step-1))
	if err != nil {
		return 0, err
	}
	if !found || len(head.Stages[schema.StageAdvantage]) == 0 {
		return 0, refusal.Corruptf("the coefficient of loss.kl follows from step %d, which has committed no advantages",
			scope.Step-1)
	}
	ref := head.Stages[schema.StageAdvantage][0]
	m, err := w.Worker.Record.Read(ctx, ref)
	if err != nil {
		return 0, err
	}
	next, found, err := batch.NextKL(m.Stats)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", ref.Key, err)
	}
	if !found { // the previous step ran under another recipe
		return beta, nil
	}
	w.Manifest.Inputs = append(w.Manifest.Inputs, ref)
	return next, nil
}

// klInUpdate is the coefficient of the penalty in a step's loss, 0 if there is none.
func klInUpdate(ctx context.Context, r record.Records, made schema.Ref, recipe *recipes.Recipe) (float64, error) {
	m, err := r.Record.Read(ctx, made)
	if err != nil {
		return 0, err
	}
	beta, err := batch.UpdateKL(recipe.Loss.KL(), m.Stats)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", made.Key, err)
	}
	return beta, nil
}
