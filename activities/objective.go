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

// imitation is what a recipe says of learning from replayed rows again, nil where it never does.
func imitation(recipe *recipes.Recipe, step int, rows []schema.BatchRow) *learner.Imitation {
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
			Aggregation: objective(recipe).Aggregation,
		},
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
