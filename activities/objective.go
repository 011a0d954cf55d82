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
		Step: int32(step), Minibatches: recipe.Optimizer.Minibatches, MinibatchRows: recipe.MinibatchRows(), Epochs: recipe.Optimizer.Epochs,
		MicrobatchTokens: recipe.Optimizer.MicrobatchTokens,
		Surrogate:        loss.PPOClip{Low: recipe.Loss.ClipLow, High: recipe.Loss.ClipHigh, Dual: recipe.Loss.DualClip},
		Aggregation:      loss.Aggregation{Mode: loss.Mode(recipe.Loss.Aggregation), Horizon: recipe.Rollout.MaxTokens},
		Terms:            lossTerms(recipe.Loss),
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
	return &learner.Imitation{
		Rows: rows, Clip: loss.PPOClip{Low: r.ClipLow, High: r.ClipHigh}, Gamma: gamma(r, step),
		Covariance: learner.CovarianceClip{Ratio: r.CovRatio, Low: r.CovLow, High: r.CovHigh},
		Draws:      seed.Rand("update/imitation", recipe.Seed, uint64(step)),
	}
}

// gamma is the weight of the imitation at a step.
func gamma(r *recipes.Replay, step int) float64 {
	return schedule.Curriculum{WarmSteps: r.GammaHorizon}.Gamma(step)
}

// lossTerms are what the loss holds beside its surrogate.
func lossTerms(l recipes.Loss) learner.Terms {
	t := learner.Terms{Entropy: l.Entropy, TISCap: l.TISCap}
	if l.KL != nil {
		t.KL, t.KLCoefficient = loss.Estimator(l.KL.Estimator), l.KL.Coefficient
	}
	return t
}
