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
	o, err := objective(recipe)
	if err != nil {
		return learner.Config{}, err
	}
	return learner.Config{
		Step: int32(step), Minibatches: recipe.Optimizer.Minibatches, MinibatchRows: recipe.Optimizer.MinibatchRows, Epochs: recipe.Optimizer.Epochs,
		MicrobatchTokens: recipe.Optimizer.MicrobatchTokens,
		Objective:        o,
		Temperature:      recipe.Rollout.Temperature,
		Optimizer:        options,
		Shuffle:          seed.Rand("update/shuffle", recipe.Seed, uint64(step)),
		Tokens:           seed.Rand("update/tokens", recipe.Seed, uint64(step)),
	}, nil
}

// criticConfig is what a recipe says of the critic's part of a step's update. Its learning rate is its
// own; the rest is the policy's optimiser, and its mini-batches are the policy's.
func criticConfig(recipe *recipes.Recipe, step int) (learner.Critic, error) {
	v, o := recipe.Loss.Value, recipe.Optimizer
	lr, err := schedule.LearningRate(schedule.Kind(o.Decay), v.LR, o.WarmupSteps, recipe.Steps, step-1)
	if err != nil {
		return learner.Critic{}, err
	}
	options := stepOptions(o)
	options.LR = lr
	return learner.Critic{Loss: loss.ValueClip{Clip: v.Clip}, Coefficient: v.Coefficient, Optimizer: options}, nil
}
