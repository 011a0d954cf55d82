package selection

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Exclude is the selection's row for a trajectory that has no reward, with the reason.
func Exclude(group, trajectory, why string) schema.SelectionRow {
	return schema.SelectionRow{GroupID: group, TrajectoryID: trajectory, Reason: schema.ReasonExcluded, Excluded: &why}
}

// Skipped is a shard of a step that failed for good and was skipped.
type Skipped struct {
	// Shard is its number, Stage the stage that failed, and Reason the failure's text.
	Shard  int
	Stage  string
	Reason string
}

// SkippedRows lists every trajectory that the skipped shards of a step would have sampled. stepPrompts are all prompts
// of the step.
func SkippedRows(recipe *recipes.Recipe, shards []Skipped, stepPrompts []schema.PromptRow) ([]schema.SelectionRow,
	error) {
	var rows []schema.SelectionRow
	seen := map[int]bool{}
	for _, s := range shards {
		some, err := skippedShard(recipe, s, stepPrompts)
		if err != nil {
			return nil, err
		}
		if seen[s.Shard] {
			return nil, refusal.Unusablef("shard %d is to be skipped twice", s.Shard)
		}
		seen[s.Shard] = true
		rows = append(rows, some...)
	}
	if len(rows) > 0 && len(rows) == len(stepPrompts)*recipe.Rollout.SamplesPerPrompt {
		return nil, refusal.Unusablef("every shard of the step is skipped, so there is nothing to learn from: %s",
			*rows[0].Excluded)
	}
	return rows, nil
}

func skippedShard(recipe *recipes.Recipe, s Skipped, stepPrompts []schema.PromptRow) ([]schema.SelectionRow, error) {
	groups, err := prompts.OfShard(stepPrompts, s.Shard, recipe.Rollout)
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		return nil, refusal.Unusablef("shard %d is to be skipped, and the step's %d prompts make no such shard",
			s.Shard, len(stepPrompts))
	}
	var rows []schema.SelectionRow
	why := rollout.Reason(fmt.Sprintf("shard %d was skipped after its %s failed", s.Shard, s.Stage), s.Reason)
	for _, p := range groups {
		step, group, err := schema.ParseGroupID(p.GroupID)
		if err != nil {
			return nil, err
		}
		for sample := range recipe.Rollout.SamplesPerPrompt {
			rows = append(rows, Exclude(p.GroupID, schema.TrajectoryID(step, group, sample), why))
		}
	}
	return rows, nil
}

// checkExcluded refuses a step with no trajectory left, and a trajectory that both has a reward and is excluded.
func checkExcluded(rewards []schema.RewardRow, excluded []schema.SelectionRow) error {
	if len(rewards) == 0 && len(excluded) > 0 {
		return refusal.Unusablef("all %d trajectories of the step are excluded, the first because: %s", len(excluded),
			*excluded[0].Excluded)
	}
	scored := make(map[string]bool, len(rewards))
	for _, r := range rewards {
		scored[r.TrajectoryID] = true
	}
	for _, e := range excluded {
		if scored[e.TrajectoryID] {
			return refusal.Unusablef("trajectory %s has a reward and is to be excluded: %s", e.TrajectoryID,
				*e.Excluded)
		}
	}
	return nil
}
