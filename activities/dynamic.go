package activities

import (
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

// dynamicSampling is the recipe's dynamic sampling as a link of the chain, or nil. It judges the rounds
// that were sampled by the same rule by which wire.Dynamic has asked for them.
func dynamicSampling(recipe *recipes.Recipe, step int) *resample.Rounds {
	d := recipe.Resample.Dynamic
	if d == nil {
		return nil
	}
	return &resample.Rounds{
		DynamicSampling: resample.DynamicSampling{Target: recipe.Rollout.Prompts, Tries: d.Tries, ColdStart: d.ColdStartSteps},
		Step:            step - 1,
	}
}

// setRounds says of every row which round of dynamic sampling it is of: each has as many groups.
func setRounds(rows []resample.Row, recipe *recipes.Recipe) error {
	if recipe.Resample.Dynamic == nil || recipe.Rollout.Prompts == 0 {
		return nil
	}
	for i := range rows {
		_, group, err := schema.ParseGroupID(rows[i].GroupID)
		if err != nil {
			return err
		}
		rows[i].Round = group / recipe.Rollout.Prompts
	}
	return nil
}

// informative counts the groups whose rewards are not all equal.
func informative(rows []schema.RewardRow) int {
	rewards := map[string][]float64{}
	for _, r := range rows {
		rewards[r.GroupID] = append(rewards[r.GroupID], r.Reward)
	}
	n := 0
	for _, group := range rewards {
		if resample.Informative(group) {
			n++
		}
	}
	return n
}
