package learner

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// errNoReturns says that a critic cannot learn from rows because their values or returns are null.
var errNoReturns = errors.New("values or returns are null")

// Critic describes how the critic learns. It minimises Coefficient times the aggregate of Loss over the policy's
// mini-batches.
type Critic struct {
	Loss        loss.ValueClip
	Coefficient float64 // > 0
	Optimizer   policy.StepOptions
}

func (c Critic) validate() error {
	if !(c.Coefficient > 0) || math.IsInf(c.Coefficient, 0) {
		return fmt.Errorf("the coefficient of the value loss must be finite and > 0, got %g", c.Coefficient)
	}
	return c.Loss.Validate()
}

// CriticStep is the result of one optimiser step of the critic.
type CriticStep struct {
	Loss     float64 // without the coefficient
	GradNorm float64
	// ExplainedVariance is 1 − Var(return − value)/Var(return) over the mini-batch's loss tokens before the step. It is
	// nil if all returns are equal.
	ExplainedVariance *float64
	// Statistics over the same tokens before the step.
	ClipFraction  float64 // share of tokens whose loss is clipped and has no gradient
	Value, Return float64 // means
	// Smaller is set from the step at which the engine ran out of memory.
	Smaller *Smaller
}

// UpdateCritic trains the critic on the mini-batches of an Update with the same batch and settings. cfg.Shuffle must be
// a fresh stream with the same seed. The errors are those of Update.
func UpdateCritic(
	ctx context.Context, trainer policy.Trainer, batch []schema.BatchRow, cfg Config, critic Critic, progress Progress,
) ([]CriticStep, error) {
	fail := func(err error) error { return fmt.Errorf("update critic: %w", err) }
	if err := errors.Join(cfg.validate(), critic.validate()); err != nil {
		return nil, fail(err)
	}
	rows, err := prepare(batch, cfg.Objective)
	if err != nil {
		return nil, fail(err)
	}
	for _, r := range rows {
		if r.values == nil || r.returns == nil {
			return nil, fail(fmt.Errorf("a row of group %s: %w", r.loss.Group, errNoReturns))
		}
	}
	c := criticUpdater{critic: critic, updater: updater{cfg: cfg, rows: rows, stepper: &stepper{
		trainer: trainer, role: policy.RoleCritic, temperature: cfg.Temperature, outputs: policy.OutValue,
		progress: progress, limit: cfg.MicrobatchTokens,
	}}}
	c.plan(c.minibatches())
	steps := make([]CriticStep, len(c.planned))
	for i, p := range c.planned {
		if steps[i], err = c.step(ctx, p); err != nil {
			return nil, fail(fmt.Errorf("minibatch %d of %d: %w", i+1, len(c.planned), err))
		}
	}
	return steps, nil
}

// criticUpdater shares the policy's rows and plan.
type criticUpdater struct {
	updater
	critic Critic
	fit    fit
}

func (c *criticUpdater) step(ctx context.Context, p planned) (CriticStep, error) {
	d, err := c.cfg.Objective.Aggregation.Denominator(c.shapes(p.rows))
	if err != nil {
		return CriticStep{}, err
	}
	out := CriticStep{}
	c.fit = fit{}
	eval := func(rows []int, outputs policy.TokenOutputs) (policy.Cotangents, error) {
		part, err := c.evaluator.EvaluateValues(c.critic.Loss, c.valued(rows, outputs), d)
		out.Loss += part.Loss
		for _, row := range part.Cotangents {
			for t := range row {
				row[t] *= float32(c.critic.Coefficient)
			}
		}
		return policy.Cotangents{Values: part.Cotangents}, err
	}
	forget := func() { out.Loss, c.fit = 0, fit{} }
	stats, err := c.stepper.minibatch(ctx, c.critic.Optimizer, share{micros: p.micros, sequence: c.sequence, eval: eval,
		forget: forget})
	out.Smaller = c.stepper.smaller
	out.GradNorm, out.ExplainedVariance, out.ClipFraction = stats.GradNorm, c.fit.explained(), c.fit.clipped()
	out.Return = mean(c.fit.returns)
	out.Value = out.Return - mean(c.fit.left)
	return out, err
}

// valued joins the rows with the values of a forward pass.
func (c *criticUpdater) valued(rows []int, out policy.TokenOutputs) []loss.ValueRow[float32] {
	valued := make([]loss.ValueRow[float32], len(rows))
	for k, i := range rows {
		r := c.rows[i]
		valued[k] = loss.ValueRow[float32]{
			Values: out.Values[k], Old: r.values, Returns: r.returns, Mask: r.loss.Mask, Count: r.loss.Count,
		}
		for t, m := range r.loss.Mask {
			if m != 0 {
				value, ret := float64(out.Values[k][t]), float64(r.returns[t])
				c.fit.add(ret, value, c.critic.Loss.Clipped(value, float64(r.values[t]), ret))
			}
		}
	}
	return valued
}

// fit collects returns and their differences from the values, and counts the values that are clipped.
type fit struct {
	returns, left []float64
	outside       int
}

func (f *fit) add(ret, value float64, clipped bool) {
	f.returns, f.left = append(f.returns, ret), append(f.left, ret-value)
	if clipped {
		f.outside++
	}
}

func (f *fit) clipped() float64 {
	if len(f.returns) == 0 {
		return 0
	}
	return float64(f.outside) / float64(len(f.returns))
}

func (f *fit) explained() *float64 {
	all := variance(f.returns)
	if all == 0 {
		return nil
	}
	return new(1 - variance(f.left)/all)
}

// variance returns the population variance: 0 for an empty list, and exactly 0 for equal values.
func variance(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	n, offset := float64(len(x)), 0.0
	for _, v := range x {
		offset += v - x[0]
	}
	sum := 0.0
	for _, v := range x {
		d := v - x[0] - offset/n
		sum += d * d
	}
	return sum / n
}
