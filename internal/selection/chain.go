package selection

import (
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
)

// Chain reads the chain from the recipe. Each group draws from its own random stream, so the selection of a group does
// not depend on the others.
func Chain(recipe *recipes.Recipe, step int) resample.Chain {
	rules := resample.Links(recipe.Resample.Params, resample.Sampling{Groups: recipe.Rollout.Prompts, Step: step - 1})
	if recipe.DropsMixed() {
		rules = resample.BeforeRules(resample.OneVersion{}, rules)
	}
	for _, m := range masksOf(recipe) {
		rules = append(rules, m)
	}
	return resample.Chain{
		Links: rules,
		Source: func(label, group string) *rand.Rand {
			return seed.Rand("resample/"+label+"/"+group, recipe.Seed, uint64(step))
		},
	}
}

// masksOf returns the recipe's filters. They come last in the chain: a dropped row needs no mask, and the reward of a
// masked row still counts.
func masksOf(recipe *recipes.Recipe) []resample.Mask { return resample.Masks(recipe.Filters.Params) }
