package learner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

// Demo is one demonstration: a token sequence and the mask of the tokens to imitate.
type Demo struct {
	TokenIDs []int32
	LossMask []int32
}

// CloneConfig describes how demonstrations become optimiser steps.
type CloneConfig struct {
	Steps            int // optimiser steps
	Batch            int // demonstrations per step
	MicrobatchTokens int
	WarmupSteps      int
	Decay            schedule.Kind
	Optimizer        policy.StepOptions // LR is the rate at the end of the warm-up
	Draw             *rand.Rand         // fresh and seeded; source of all random draws of the cloning
}

func (c CloneConfig) validate() error {
	switch {
	case c.Steps < 1 || c.Batch < 1 || c.MicrobatchTokens < 1:
		return fmt.Errorf(
			"steps, batch and microbatch_tokens must be ≥ 1, got %d, %d and %d", c.Steps, c.Batch, c.MicrobatchTokens,
		)
	case c.Draw == nil:
		return errors.New("a random stream for the draws is needed")
	}
	_, err := schedule.LearningRate(c.Decay, c.Optimizer.LR, c.WarmupSteps, c.Steps, 0)
	return err
}

// CloneStep is the result of one optimiser step of a cloning.
type CloneStep struct {
	OptimizerStep int64
	Rows          int
	Tokens        int64   // under the loss mask
	Loss          float64 // mean −logp per token, before the step
	GradNorm      float64
	LR            float64
}

// CloneResult is the result of a cloning.
type CloneResult struct {
	Steps   []CloneStep
	Smaller *Smaller // nil unless the engine's memory was full
}

// Clone imitates demonstrations. Each step draws Batch of them, without replacement until all have been drawn, and
// lowers their mean −logp per token. After an error, the trainer keeps the steps already taken and no gradient.
func Clone(
	ctx context.Context, trainer policy.Trainer, demos []Demo, cfg CloneConfig, progress Progress,
) (CloneResult, error) {
	if err := cfg.validate(); err != nil {
		return CloneResult{}, fmt.Errorf("clone demonstrations: %w", err)
	}
	var usable []Demo
	for i, d := range demos {
		if err := checkTokens(d.TokenIDs, d.LossMask); err != nil {
			return CloneResult{}, fmt.Errorf("clone demonstrations: demonstration %d: %w", i, err)
		}
		if live(d.LossMask) {
			usable = append(usable, d)
		}
	}
	if len(usable) == 0 {
		return CloneResult{}, errors.New("clone demonstrations: none has a token to imitate")
	}
	c := cloner{cfg: cfg, demos: usable, stepper: stepper{
		// Cloning fits the untempered distribution.
		trainer: trainer, role: policy.RolePolicy, temperature: 1, outputs: policy.OutLogProb, progress: progress,
		limit: cfg.MicrobatchTokens,
	}}
	err := c.run(ctx)
	c.result.Smaller = c.stepper.smaller
	if err != nil {
		err = fmt.Errorf("clone demonstrations: %w", err)
	}
	return c.result, err
}

// cloner is the state of one cloning.
type cloner struct {
	cfg       CloneConfig
	demos     []Demo
	stepper   stepper
	evaluator loss.Evaluator[float32]
	deck      []int // demonstrations not yet drawn in this round
	result    CloneResult
}

func (c *cloner) run(ctx context.Context) error {
	plan := make([][][]int, c.cfg.Steps)
	for step := range plan {
		plan[step] = pack(c.draw(), func(i int) int { return len(c.demos[i].TokenIDs) }, c.cfg.MicrobatchTokens)
		c.stepper.total += len(plan[step])
	}
	for step, micros := range plan {
		if err := c.step(ctx, step, micros); err != nil {
			return fmt.Errorf("step %d of %d: %w", step+1, c.cfg.Steps, err)
		}
	}
	return nil
}

// draw takes the next demonstrations from the deck. It shuffles the deck again when the deck is empty.
func (c *cloner) draw() []int {
	out := make([]int, 0, c.cfg.Batch)
	for len(out) < c.cfg.Batch {
		if len(c.deck) == 0 {
			c.deck = c.cfg.Draw.Perm(len(c.demos))
		}
		n := min(c.cfg.Batch-len(out), len(c.deck))
		out = append(out, c.deck[:n]...)
		c.deck = c.deck[n:]
	}
	return out
}

// step takes one optimiser step and records it.
func (c *cloner) step(ctx context.Context, step int, micros [][]int) error {
	opts := c.cfg.Optimizer
	rate, err := schedule.LearningRate(c.cfg.Decay, opts.LR, c.cfg.WarmupSteps, c.cfg.Steps, step)
	if err != nil {
		return err
	}
	opts.LR = rate
	var masks [][]int32
	for _, rows := range micros {
		for _, i := range rows {
			masks = append(masks, c.demos[i].LossMask)
		}
	}
	denominator, err := loss.Aggregation{Mode: loss.TokenMean}.Denominator(masks, nil)
	if err != nil {
		return err
	}
	record := CloneStep{LR: rate}
	eval := func(rows []int, out policy.TokenOutputs) (policy.Cotangents, error) {
		part, err := c.evaluator.Evaluate(
			loss.Objective{Policy: loss.BehaviourCloning{}}, c.filled(rows, out), loss.Plan{Policy: denominator},
		)
		record.Loss += part.Loss
		record.Rows += part.Tally.Rows
		record.Tokens += part.Tally.Tokens
		return policy.Cotangents{LogProbs: part.Cotangents}, err
	}
	forget := func() { record = CloneStep{LR: rate} }
	stats, err := c.stepper.minibatch(
		ctx, opts, share{micros: micros, sequence: func(i int) []int32 { return c.demos[i].TokenIDs }, eval: eval,
			forget: forget},
	)
	if err != nil {
		return err
	}
	record.OptimizerStep, record.GradNorm = stats.Step, stats.GradNorm
	c.result.Steps = append(c.result.Steps, record)
	return nil
}

// filled joins the demonstrations with the log-probabilities of a forward pass.
func (c *cloner) filled(rows []int, out policy.TokenOutputs) []loss.Row[float32] {
	filled := make([]loss.Row[float32], len(rows))
	for k, i := range rows {
		filled[k] = loss.Row[float32]{LogProbs: out.LogProbs[k], Mask: c.demos[i].LossMask, Count: 1}
	}
	return filled
}
