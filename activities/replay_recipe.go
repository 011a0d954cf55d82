package activities

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
)

// recipeReads says which parts of the recipe each pure stage reads.
var recipeReads = map[string][]string{
	wire.StageReward:    {"reward", "schedule.mu_horizon"},
	wire.StageResample:  {"resample", "filters", "seed"}, // the seed of its draws
	wire.StageAdvantage: {"advantage", "layout"},
	wire.StageBuffer:    {"replay"},
}

// replayRecipe puts overrides into a run's committed recipe and validates the outcome whole. An
// override of what the replayed stages do not read would change nothing and is refused.
func replayRecipe(run string, committed *recipes.Recipe, set, stages []string) (*recipes.Recipe, error) {
	if unread := unreadOverrides(set, stages); len(unread) > 0 {
		return nil, unread
	}
	text, err := committed.Canonical()
	if err != nil {
		return nil, err
	}
	recipe, err := recipes.ParseWith("recipe of run "+run, text, set)
	if err != nil {
		return nil, err
	}
	if slices.Contains(stages, wire.StageBuffer) && recipe.Replay == nil {
		return nil, refuse(wire.FailBadInput, "replay: the recipe of run %s has no such section, so there is no buffer to make again; replay through advantage", run)
	}
	if err := built(recipe); err != nil {
		return nil, err
	}
	if slices.Contains(stages, wire.StageReward) {
		return recipe, scoredFromRecord(recipe.Reward.Name)
	}
	return recipe, nil
}

// unreadOverrides finds the overrides of known parts of the recipe that no replayed stage reads.
func unreadOverrides(set, stages []string) recipes.Problems {
	known := map[string]bool{}
	for _, f := range recipes.Fields() {
		known[f.Path] = true
	}
	var out recipes.Problems
	for _, s := range set {
		path, _, _ := strings.Cut(s, "=")
		part, _, _ := strings.Cut(path, ".")
		if known[part] && !slices.ContainsFunc(stages, func(stage string) bool { return readsPath(stage, path) }) {
			out = append(out, recipes.Problem{File: "--set " + s, Path: path, Message: "no replayed stage reads it; " + readWords(stages)})
		}
	}
	return out
}

// readsPath reports whether a stage reads a field of the recipe.
func readsPath(stage, path string) bool {
	return slices.ContainsFunc(recipeReads[stage], func(part string) bool { return path == part || strings.HasPrefix(path, part+".") })
}

func readWords(stages []string) string {
	var parts []string
	for _, stage := range stages {
		reads := recipeReads[stage][0] + ".*"
		for _, more := range recipeReads[stage][1:] {
			reads += " and " + more
		}
		parts = append(parts, fmt.Sprintf("%s reads %s", stage, reads))
	}
	return strings.Join(parts, ", ")
}

// scoredFromRecord refuses a reward that depends on more than what is committed of a trajectory,
// such as the state of a session that ended with its episode.
func scoredFromRecord(reward string) error {
	if gradable(reward) {
		return nil
	}
	return refuse(wire.FailRefused, "reward.name: %s is not known to follow from the committed trajectories alone, so it cannot be replayed; "+
		"replay from resample, or run the recipe again with the same seed: ropewalk run RECIPE --seed N", reward)
}
