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
	return buildBatch(selection, rewards, turns, recipe.Advantage)
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
