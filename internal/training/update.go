package training

import (
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/schedule"
	"github.com/ropewalk/ropewalk/schema"
)

// Update is the configuration of one step's update: how the batch is cut, what is minimised and with which
// optimiser steps. coefficient is the coefficient of the penalty in the loss, if there is one.
func Update(recipe *recipes.Recipe, step int, coefficient float64) (learner.Config, error) {
	lr, err := schedule.LearningRate(schedule.Kind(recipe.Optimizer.Decay), recipe.Optimizer.LR,
		recipe.Optimizer.WarmupSteps, recipe.Steps, step-1)
	if err != nil {
		return learner.Config{}, err
	}
	options, err := stepOptions(recipe.Optimizer, lr)
	if err != nil {
		return learner.Config{}, err
	}
	o, err := objective(recipe, coefficient)
	if err != nil {
		return learner.Config{}, err
	}
	return learner.Config{
		Minibatches: recipe.Optimizer.Minibatches, MinibatchRows: recipe.MinibatchRows(),
		Epochs:           recipe.Optimizer.Epochs,
		MicrobatchTokens: recipe.Optimizer.MicrobatchTokens, SharePrefixes: recipe.Optimizer.SharePrefixes,
		Objective:   o,
		Temperature: recipe.Rollout.Temperature,
		Optimizer:   options,
		Shuffle:     seed.Rand("update/shuffle", recipe.Seed, uint64(step)),
		Tokens:      seed.Rand("update/tokens", recipe.Seed, uint64(step)),
	}, nil
}

// Imitation is the configuration of learning from the rows of a replay batch; nil if the recipe has no replay.
func Imitation(recipe *recipes.Recipe, step int, aggregation loss.Aggregation,
	rows []schema.BatchRow) *learner.Imitation {
	r := recipe.Replay
	if r == nil {
		return nil
	}
	var clip loss.Surrogate = loss.PPOClip{Low: r.ClipLow, High: r.ClipHigh}
	if r.CovRatio > 0 {
		clip = loss.ClipCov{Low: r.ClipLow, High: r.ClipHigh,
			Rule: loss.CovarianceRule{Scope: loss.CovarianceScope(r.CovScope), Ratio: r.CovRatio, Lower: r.CovLow,
				Upper: r.CovHigh, PerRow: r.CovScope == string(loss.ScopeGroup)}}
	}
	return &learner.Imitation{
		Rows: rows,
		Objective: loss.Objective{
			Policy:      loss.SelfImitation{Policy: clip, Gamma: r.Coefficient * Gamma(recipe, step)},
			Aggregation: aggregation,
		},
		Joint:   r.Order == "joint",
		Shuffle: seed.Rand("update/imitation/shuffle", recipe.Seed, uint64(step)),
		Tokens:  seed.Rand("update/imitation/tokens", recipe.Seed, uint64(step)),
	}
}

// Gamma is the schedule's weight of the imitation at a step.
func Gamma(recipe *recipes.Recipe, step int) float64 {
	return schedule.Gamma{Horizon: recipe.Schedule.GammaHorizon()}.At(step)
}

// Critic is the configuration of the critic's part of a step's update. The critic has its own learning rate.
// The other optimiser settings and the mini-batches are the policy's.
func Critic(recipe *recipes.Recipe, step int) (learner.Critic, error) {
	v, o := recipe.Loss.Value(), recipe.Optimizer
	lr, err := schedule.LearningRate(schedule.Kind(o.Decay), v.LR, o.WarmupSteps, recipe.Steps, step-1)
	if err != nil {
		return learner.Critic{}, err
	}
	options, err := stepOptions(o, lr)
	return learner.Critic{Loss: loss.ValueClip{Clip: v.Clip}, Coefficient: v.Coefficient, Optimizer: options}, err
}

// Clone is the configuration of the warm start's cloning.
func Clone(recipe *recipes.Recipe) (learner.CloneConfig, error) {
	o := recipe.WarmStart.Optimizer
	options, err := stepOptions(o, o.LR)
	return learner.CloneConfig{
		Steps: recipe.WarmStart.Steps, Batch: recipe.WarmStart.Batch, MicrobatchTokens: o.MicrobatchTokens,
		WarmupSteps: o.WarmupSteps, Decay: schedule.Kind(o.Decay), Optimizer: options,
		Draw: seed.Rand("warm_start/clone", recipe.Seed),
	}, err
}

func stepOptions(o recipes.Optimizer, lr float64) (policy.StepOptions, error) {
	rule, err := o.Rule()
	return policy.StepOptions{LR: lr, Rule: rule, ClipNorm: o.ClipNorm}, err
}
