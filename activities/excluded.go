package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// excludedRow is the selection's row of a trajectory that has no reward, and why.
func excludedRow(group, trajectory, why string) schema.SelectionRow {
	return schema.SelectionRow{GroupID: group, TrajectoryID: trajectory, Reason: schema.ReasonExcluded, Excluded: &why}
}

// skipped lists the trajectories of the shards that were skipped.
func (d *Deps) skipped(ctx context.Context, in wire.ResampleInput, recipe *recipes.Recipe) ([]schema.SelectionRow, error) {
	if len(in.Excluded) == 0 {
		return nil, nil
	}
	if recipe.Environment.Name == recipes.GSM8KSolutions {
		return nil, refuse(wire.FailRefused, "shards of an import cannot be skipped: nothing but the shard itself says which trajectories it holds; mend the cause and retry")
	}
	prompts, err := read[schema.PromptRow](ctx, d, in.Prompts)
	if err != nil {
		return nil, err
	}
	rows, err := skippedRows(in.Excluded, prompts, recipe.Rollout)
	if err == nil && len(rows) == len(prompts)*recipe.Rollout.Oversample {
		return nil, refuse(wire.FailRefused, "every shard of the step is skipped, so there is nothing to learn from: %s", *rows[0].Excluded)
	}
	return rows, err
}

// skippedRows lists every trajectory that the skipped shards would have sampled.
func skippedRows(shards []wire.ExcludedShard, prompts []schema.PromptRow, method recipes.Rollout) ([]schema.SelectionRow, error) {
	var rows []schema.SelectionRow
	seen := map[int]bool{}
	for _, s := range shards {
		groups, err := shardPrompts(prompts, s.Shard, method)
		if err != nil {
			return nil, err
		}
		if len(groups) == 0 {
			return nil, refuse(wire.FailRefused, "shard %d is to be skipped, and the step's %d prompts make no such shard", s.Shard, len(prompts))
		}
		if seen[s.Shard] {
			return nil, refuse(wire.FailRefused, "shard %d is to be skipped twice", s.Shard)
		}
		seen[s.Shard] = true
		why := rollout.Reason(fmt.Sprintf("shard %d was skipped after its %s failed", s.Shard, s.Stage), s.Reason)
		for _, p := range groups {
			step, group, err := schema.ParseGroupID(p.GroupID)
			if err != nil {
				return nil, err
			}
			for sample := range method.Oversample {
				rows = append(rows, excludedRow(p.GroupID, schema.TrajectoryID(step, group, sample), why))
			}
		}
	}
	return rows, nil
}

// shardPrompts are the prompts of one shard of a step's; none of a shard that there is not. Each round
// of sampling has as many shards, numbered on from those of the round before.
func shardPrompts(prompts []schema.PromptRow, shard int, method recipes.Rollout) ([]schema.PromptRow, error) {
	var rows []schema.PromptRow
	if method.Prompts == 0 || method.ShardGroups == 0 { // an import's
		return rows, nil
	}
	shards := (method.Prompts + method.ShardGroups - 1) / method.ShardGroups
	for _, p := range prompts {
		_, group, err := schema.ParseGroupID(p.GroupID)
		if err != nil {
			return nil, err
		}
		if shard == group/method.Prompts*shards+group%method.Prompts/method.ShardGroups {
			rows = append(rows, p)
		}
	}
	return rows, nil
}

// checkExcluded refuses a step of which nothing is left, and a trajectory that has a reward and is
// excluded as well.
func checkExcluded(rewards []schema.RewardRow, excluded []schema.SelectionRow) error {
	if len(rewards) == 0 && len(excluded) > 0 {
		return refuse(wire.FailRefused, "all %d trajectories of the step are excluded, the first because: %s", len(excluded), *excluded[0].Excluded)
	}
	scored := make(map[string]bool, len(rewards))
	for _, r := range rewards {
		scored[r.TrajectoryID] = true
	}
	for _, e := range excluded {
		if scored[e.TrajectoryID] {
			return refuse(wire.FailRefused, "trajectory %s has a reward and is to be excluded: %s", e.TrajectoryID, *e.Excluded)
		}
	}
	return nil
}

// noteExcluded puts into the manifest how many trajectories were excluded and which shards were
// skipped, so that the stage can be done again from the record alone.
func noteExcluded(w *draft, shards []wire.ExcludedShard, trajectories int) error {
	if trajectories > 0 {
		w.stats = map[string]float64{schema.StatExcluded: float64(trajectories)}
	}
	if len(shards) == 0 {
		return nil
	}
	data, err := json.Marshal(shards)
	if err != nil {
		return fmt.Errorf("encode the skipped shards: %w", err)
	}
	if w.manifest.Note == nil {
		w.manifest.Note = map[string]string{}
	}
	w.manifest.Note[schema.NoteExcludedShards] = string(data)
	return nil
}

// excludedShards is the inverse of noteExcluded: the shards that a resample stage was made without.
func excludedShards(m schema.Manifest) ([]wire.ExcludedShard, error) {
	text, ok := m.Note[schema.NoteExcludedShards]
	if !ok {
		return nil, nil
	}
	var out []wire.ExcludedShard
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("%w: %s: note %s: %w", commit.ErrDamaged, m.ManifestKey(), schema.NoteExcludedShards, err)
	}
	return out, nil
}
