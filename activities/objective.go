package activities

import (
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

// learnerConfig is what a recipe says of one step's update: how the batch is cut, what is minimised
// and by which steps.
func learnerConfig(recipe *recipes.Recipe, step int) (learner.Config, error) {
	lr, err := schedule.LearningRate(schedule.Kind(recipe.Optimizer.Decay), recipe.Optimizer.LR, recipe.Optimizer.WarmupSteps, recipe.Steps, step-1)
	if err != nil {
		return learner.Config{}, err
	}
	options := stepOptions(recipe.Optimizer)
	options.LR = lr
	return learner.Config{
		Step: int32(step), Minibatches: recipe.Optimizer.Minibatches, MinibatchRows: recipe.Optimizer.MinibatchRows, Epochs: recipe.Optimizer.Epochs,
		MicrobatchTokens: recipe.Optimizer.MicrobatchTokens,
		Objective:        objective(recipe),
		Temperature:      recipe.Rollout.Temperature,
		Optimizer:        options,
		Shuffle:          seed.Rand("update/shuffle", recipe.Seed, uint64(step)),
	}, nil
}

// objective is what the recipe's method minimises.
func objective(recipe *recipes.Recipe) loss.Objective {
	l := recipe.Loss
	o := loss.Objective{
		Policy:      loss.PPOClip{Low: l.ClipLow, High: l.ClipHigh, Dual: l.DualClip},
		Aggregation: loss.Aggregation{Mode: loss.Mode(l.Aggregation), Horizon: recipe.Rollout.MaxTokens},
	}
	if l.KL != nil {
		o.KL = &loss.KL{Estimator: loss.Estimator(l.KL.Estimator), Coefficient: l.KL.Coefficient}
	}
	if l.TIS != nil {
		o.TIS = &loss.TIS{Cap: l.TIS.Cap}
	}
	if l.Entropy != 0 {
		o.Entropy = &loss.Entropy{Coefficient: l.Entropy}
	}
	return o
}
