package activities

import (
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/schedule"
	"github.com/ropewalk/ropewalk/schema"
)

// learnerConfig is what a recipe says of one step's update: how the batch is cut, what is minimised
// and by which steps. The coefficient is that of the penalty in the loss, if it holds one.
func learnerConfig(recipe *recipes.Recipe, step int, coefficient float64) (learner.Config, error) {
	lr, err := schedule.LearningRate(schedule.Kind(recipe.Optimizer.Decay), recipe.Optimizer.LR, recipe.Optimizer.WarmupSteps, recipe.Steps, step-1)
	if err != nil {
		return learner.Config{}, err
	}
	options := stepOptions(recipe.Optimizer)
	options.LR = lr
	o, err := objective(recipe, coefficient)
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

// imitation is what a recipe says of learning from replayed rows again, nil where it never does.
func imitation(recipe *recipes.Recipe, step int, aggregation loss.Aggregation, rows []schema.BatchRow) *learner.Imitation {
	r := recipe.Replay
	if r == nil {
		return nil
	}
	var clip loss.Surrogate = loss.PPOClip{Low: r.ClipLow, High: r.ClipHigh}
	if r.CovRatio > 0 {
		clip = loss.ClipCov{Low: r.ClipLow, High: r.ClipHigh, Rule: loss.CovarianceRule{Ratio: r.CovRatio, Lower: r.CovLow, Upper: r.CovHigh}}
	}
	return &learner.Imitation{
		Rows: rows,
		Objective: loss.Objective{
			Policy:      loss.SelfImitation{Policy: clip, Gamma: r.Coefficient * gamma(recipe, step)},
			Aggregation: aggregation,
		},
		Joint:   r.Order == "joint",
		Shuffle: seed.Rand("update/imitation/shuffle", recipe.Seed, uint64(step)),
		Tokens:  seed.Rand("update/imitation/tokens", recipe.Seed, uint64(step)),
	}
}

// gamma is the weight of the imitation at a step by the schedule.
func gamma(recipe *recipes.Recipe, step int) float64 {
	if recipe.Schedule == nil {
		return 1
	}
	return schedule.Curriculum{WarmSteps: recipe.Schedule.GammaHorizon}.Gamma(step)
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
