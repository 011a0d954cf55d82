package activities

import (
	"cmp"
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/schema"
)

// ComputeAdvantages lays the kept trajectories' tokens and advantages into the training batch.
type ComputeAdvantages struct{ *Deps }

// Execute writes the batch, each kept row once, its advantage multiplied by its weight.
func (a ComputeAdvantages) Execute(ctx context.Context, in wire.AdvantageInput) (wire.Advantages, error) {
	out := wire.Advantages{}
	inputs := append(slices.Clone(in.Turns), in.Rewards, in.Selection)
	if in.Outputs != (schema.Ref{}) {
		inputs = append(inputs, in.Outputs)
	}
	s := spec{scope: in.Scope, stage: wire.StageAdvantage, turn: -1, shard: -1, inputs: inputs}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		batch, err := a.batch(ctx, in, recipe)
		if err != nil {
			return err
		}
		for _, row := range batch {
			for _, m := range row.LossMask {
				out.Tokens += int64(m)
			}
		}
		out.Rows = len(batch)
		w.timing.Rows, w.timing.Tokens = int64(out.Rows), out.Tokens
		schema.SortBatch(batch)
		data, err := schema.EncodeBatch(batch)
		if err != nil {
			return err
		}
		return w.shard(ctx, schema.Batch, data, len(batch))
	})
	return out, err
}

func (a ComputeAdvantages) batch(ctx context.Context, in wire.AdvantageInput, recipe *recipes.Recipe) ([]schema.BatchRow, error) {
	selection, err := read[schema.SelectionRow](ctx, a.Deps, in.Selection)
	if err != nil {
		return nil, err
	}
	rewards, err := read[schema.RewardRow](ctx, a.Deps, in.Rewards)
	if err != nil {
		return nil, err
	}
	turns, err := read[schema.TurnRow](ctx, a.Deps, in.Turns...)
	if err != nil {
		return nil, err
	}
	batch, err := buildBatch(selection, rewards, turns, recipe.Advantage)
	if err != nil {
		return nil, err
	}
	return batch, a.addOutputs(ctx, in, recipe, batch)
}

// addOutputs puts what the update needs of other policies beside the batch's rows.
func (a ComputeAdvantages) addOutputs(ctx context.Context, in wire.AdvantageInput, recipe *recipes.Recipe, batch []schema.BatchRow) error {
	if !recipe.Outputs().Any() {
		return nil
	}
	if in.Outputs == (schema.Ref{}) {
		return refuse(wire.FailRefused, "the recipe needs token outputs, and step %d of run %s has committed none", in.Step, in.Run)
	}
	outputs, err := read[schema.TokenOutputsRow](ctx, a.Deps, in.Outputs)
	if err != nil {
		return err
	}
	return joinOutputs(batch, outputs, recipe)
}

// joinOutputs joins the batch with its token outputs.
func joinOutputs(batch []schema.BatchRow, outputs []schema.TokenOutputsRow, recipe *recipes.Recipe) error {
	of := make(map[string]schema.TokenOutputsRow, len(outputs))
	for _, o := range outputs {
		of[o.TrajectoryID] = o
	}
	for i := range batch {
		row := &batch[i]
		o, ok := of[row.TrajectoryID]
		if !ok {
			return refuse(wire.FailRefused, "trajectory %s is kept and has no token outputs: it was not kept when the step's forward pass ran, and another needs the engine; "+
				"replay through resample alone to see the selection, or run the recipe again with the settings: ropewalk run RECIPE --set path=value", row.TrajectoryID)
		}
		if recipe.Outputs().OldLogProbs {
			if recipe.Loss.TIS != nil {
				row.RolloutLogProbs = row.OldLogProbs
			}
			if row.OldLogProbs = o.OldLogProbs; row.OldLogProbs == nil {
				return refuse(wire.FailRefused, "the token outputs of trajectory %s hold no log-probabilities of the policy, which the recipe needs", row.TrajectoryID)
			}
		}
		if recipe.Loss.KL != nil {
			if row.ReferenceLogProbs = o.ReferenceLogProbs; row.ReferenceLogProbs == nil {
				return refuse(wire.FailRefused, "the token outputs of trajectory %s hold no log-probabilities of the reference, which the recipe needs", row.TrajectoryID)
			}
		}
	}
	return nil
}

// buildBatch joins the kept rows with their rewards and turns, in canonical order.
func buildBatch(selection []schema.SelectionRow, rewards []schema.RewardRow, turns []schema.TurnRow, method recipes.Advantage) ([]schema.BatchRow, error) {
	rewardOf := make(map[string]float64, len(rewards))
	for _, r := range rewards {
		rewardOf[r.TrajectoryID] = r.Reward
	}
	kept := slices.DeleteFunc(slices.Clone(selection), func(s schema.SelectionRow) bool { return !s.Kept })
	slices.SortFunc(kept, func(x, y schema.SelectionRow) int { return cmp.Compare(x.TrajectoryID, y.TrajectoryID) })
	scores, groups := make([]float64, len(kept)), make([]string, len(kept))
	for i, s := range kept {
		reward, ok := rewardOf[s.TrajectoryID]
		if !ok {
			return nil, refuse(wire.FailCorrupt, "trajectory %s is selected and has no reward", s.TrajectoryID)
		}
		scores[i], groups[i] = reward, s.GroupID
	}
	estimator := advantage.Group{Std: method.Std, SingleGroup: advantage.SingleGroup(method.SingleGroup)}
	advantages, err := estimator.Estimate(scores, groups)
	if err != nil {
		return nil, err
	}
	tokens := joinTurns(turns)
	batch := make([]schema.BatchRow, len(kept))
	for i, s := range kept {
		row, ok := tokens[s.TrajectoryID]
		if !ok {
			return nil, refuse(wire.FailCorrupt, "trajectory %s is selected and has no turns", s.TrajectoryID)
		}
		row.GroupID, row.TrajectoryID, row.Count, row.Weight = s.GroupID, s.TrajectoryID, s.Count, s.Weight
		row.Advantages = make([]float32, len(row.TokenIDs))
		for t, m := range row.LossMask {
			if m == 1 {
				row.Advantages[t] = float32(advantages[i] * s.Weight)
			}
		}
		batch[i] = row
	}
	return batch, nil
}

// joinTurns concatenates each trajectory's turns in order. A trajectory with a turn whose
// log-probabilities are null has none at all.
func joinTurns(turns []schema.TurnRow) map[string]schema.BatchRow {
	ordered := slices.Clone(turns)
	slices.SortStableFunc(ordered, func(x, y schema.TurnRow) int { return cmp.Compare(x.Turn, y.Turn) })
	out := map[string]schema.BatchRow{}
	unknown := map[string]bool{}
	for _, t := range ordered {
		row := out[t.TrajectoryID]
		row.TokenIDs = append(row.TokenIDs, t.TokenIDs...)
		row.LossMask = append(row.LossMask, t.LossMask...)
		if t.LogProbs == nil || unknown[t.TrajectoryID] {
			row.OldLogProbs, unknown[t.TrajectoryID] = nil, true
		} else {
			row.OldLogProbs = append(row.OldLogProbs, t.LogProbs...)
		}
		out[t.TrajectoryID] = row
	}
	return out
}
