package training

import (
	"fmt"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// objective is what the recipe's method minimises. coefficient is the coefficient of the step's penalty on the
// divergence from the reference, if the loss includes one.
func objective(recipe *recipes.Recipe, coefficient float64) (loss.Objective, error) {
	l := recipe.Loss
	s, err := loss.New(l.Name, l.Params)
	if err != nil {
		return loss.Objective{}, fmt.Errorf("loss.name: %w", err)
	}
	o := loss.Objective{
		Policy:      s,
		Aggregation: loss.Aggregation{Mode: loss.Mode(l.Aggregation), Horizon: recipe.Rollout.MaxTokens},
	}
	err = loss.AddTerms(&o, l.Terms, loss.Step{KL: coefficient})
	return o, err
}
