package learner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// ErrNoLogProbs refuses rows whose behaviour log-probabilities are unknown, such as imported ones.
var ErrNoLogProbs = errors.New("old log-probabilities are null")

// Config says how a batch becomes optimiser steps.
type Config struct {
	Step             int32 // of the run; copied to the rows of the record
	Minibatches      int   // optimiser steps per epoch; fewer when there are fewer rows
	MinibatchRows    int   // rows of one optimiser step at most; 0 cuts by Minibatches alone
	Epochs           int
	MicrobatchTokens int // bound on the tokens of one forward pass
	Surrogate        loss.Surrogate
	Aggregation      loss.Aggregation
	Terms            Terms              // of the loss beside the surrogate
	Temperature      float64            // of the sampling that gave the batch
	Optimizer        policy.StepOptions // LR is this update's
	Shuffle          *rand.Rand         // fresh and seeded: all of the update's draws, the imitation's aside
	Imitation        *Imitation         // of replayed rows, after the batch; nil where nothing is ever replayed
}

func (c Config) validate() error {
	switch {
	case c.Minibatches < 1 || c.Epochs < 1 || c.MicrobatchTokens < 1:
		return fmt.Errorf("minibatches, epochs and microbatch_tokens must be ≥ 1, got %d, %d and %d", c.Minibatches, c.Epochs, c.MicrobatchTokens)
	case c.MinibatchRows < 0:
		return fmt.Errorf("minibatch_rows must be ≥ 0, got %d", c.MinibatchRows)
	case c.Surrogate == nil:
		return errors.New("a policy loss is needed")
	case c.Shuffle == nil:
		return errors.New("a random stream for the shuffle is needed")
	case !(c.Temperature > 0) || math.IsInf(c.Temperature, 0):
		return fmt.Errorf("temperature must be finite and > 0, got %g", c.Temperature)
	}
	return errors.Join(c.Surrogate.Validate(), c.Aggregation.Validate(), c.Terms.validate())
}

// Result is what an update did. A batch without a loss token gives no Updates: nothing moved.
type Result struct {
	Updates []schema.UpdateRow // one per optimiser step; PolicyBefore and PolicyAfter are the caller's
	Details []Detail           // alongside Updates: statistics that the record's rows do not hold
	Rows    int                // live rows of the batch, and of what is imitated
	Tokens  int64              // their loss tokens, each row once
	// LogProbDrift is the greatest |new − old| over the batch's first mini-batch, before any step.
	LogProbDrift float64
}

// Detail holds further statistics of one optimiser step.
type Detail struct {
	Epoch             int
	LowerClipFraction float64 // tokens on which the dual clip was active
	RatioMin          float64
	LogProbDrift      float64 // greatest |new − old|
	Clipped           bool    // the gradient's norm was clipped
	Microbatches      int
}

// Update takes one optimiser step per mini-batch and epoch over the batch. On an error the engine
// keeps the steps already taken and no gradient: load the checkpoint again before another try.
func Update(ctx context.Context, engine policy.Engine, batch []schema.BatchRow, cfg Config, progress Progress) (Result, error) {
	if err := cfg.validate(); err != nil {
		return Result{}, fmt.Errorf("update policy: %w", err)
	}
	rows, err := prepare(batch, cfg.Terms)
	if err != nil {
		return Result{}, fmt.Errorf("update policy: %w", err)
	}
	var result Result
	l := &lane{engine: engine, temperature: cfg.Temperature, outputs: policy.OutLogProb | policy.OutEntropy, progress: progress}
	parts := []*updater{{cfg: cfg, rows: rows, lane: l, result: &result}}
	if cfg.Imitation != nil {
		again, err := cfg.Imitation.updater(cfg, l, &result)
		if err != nil {
			return Result{}, fmt.Errorf("imitate: %w", err)
		}
		parts[0].source = schema.SourcePolicy
		parts = append(parts, again)
	}
	for _, u := range parts {
		u.plan()
	}
	for _, u := range parts {
		if err := u.run(ctx); err != nil {
			return result, fmt.Errorf("update policy: %w", err)
		}
	}
	return result, nil
}

// row is a live batch row, widened for the loss.
type row struct {
	tokens []int32
	loss   loss.Row // LogProbs stay empty until a forward pass fills them
	// reference are the reference policy's log-probabilities, where a term needs them.
	reference []float64
}

// prepare checks the batch and returns its live rows in canonical order.
func prepare(batch []schema.BatchRow, terms Terms) ([]row, error) {
	sorted := slices.Clone(batch)
	slices.SortFunc(sorted, func(a, b schema.BatchRow) int {
		return cmp.Or(cmp.Compare(a.GroupID, b.GroupID), cmp.Compare(a.TrajectoryID, b.TrajectoryID))
	})
	out := make([]row, 0, len(sorted))
	for _, b := range sorted {
		r, err := prepareRow(b, terms)
		if err != nil {
			return nil, fmt.Errorf("trajectory %s of group %s: %w", b.TrajectoryID, b.GroupID, err)
		}
		if live(b.LossMask) {
			out = append(out, r)
		}
	}
	return out, nil
}

func prepareRow(b schema.BatchRow, terms Terms) (row, error) {
	if b.OldLogProbs == nil {
		return row{}, ErrNoLogProbs
	}
	if err := checkTokens(b.TokenIDs, b.LossMask); err != nil {
		return row{}, err
	}
	r := row{tokens: b.TokenIDs, loss: loss.Row{
		Old: widen(b.OldLogProbs), Advantages: widen(b.Advantages), Mask: b.LossMask, Count: b.Count,
	}}
	if err := r.loss.Validate(); err != nil {
		return r, err
	}
	return r, terms.prepare(&r, b)
}

// updater is the state of one update.
type updater struct {
	cfg     Config
	rows    []row
	lane    *lane
	result  *Result
	planned []planned

	source    string     // of the rows, for the record; "" where there is one only
	imitation *Imitation // of replayed rows
	weighed   map[int][]float64
}

// planned is one optimiser step to be taken.
type planned struct {
	epoch  int
	rows   []int
	micros [][]int
}

func (u *updater) run(ctx context.Context) error {
	u.result.Rows += len(u.rows)
	for _, r := range u.rows {
		u.result.Tokens += int64(r.loss.Tokens())
	}
	for k, p := range u.planned {
		if err := u.step(ctx, p); err != nil {
			return fmt.Errorf("minibatch %d of %d: %w", k+1, len(u.planned), err)
		}
	}
	return nil
}

// plan shuffles the rows once per epoch and cuts them into mini-batches of like numbers of rows.
func (u *updater) plan() {
	n := u.cfg.Minibatches
	if most := u.cfg.MinibatchRows; most > 0 {
		n = (len(u.rows) + most - 1) / most
	}
	n = min(n, len(u.rows))
	for epoch := range u.cfg.Epochs {
		order := u.cfg.Shuffle.Perm(len(u.rows))
		for k := range n {
			rows := order[k*len(order)/n : (k+1)*len(order)/n]
			micros := pack(rows, func(i int) int { return len(u.rows[i].tokens) }, u.cfg.MicrobatchTokens)
			u.planned = append(u.planned, planned{epoch: epoch, rows: rows, micros: micros})
			u.lane.total += len(micros)
		}
	}
}

// step takes one optimiser step and records it.
func (u *updater) step(ctx context.Context, p planned) error {
	if err := u.weigh(ctx, p.rows); err != nil {
		return err
	}
	o, err := u.objective(p.rows)
	if err != nil {
		return err
	}
	stats, err := u.lane.minibatch(ctx, p.micros, func(i int) []int32 { return u.rows[i].tokens }, u.cfg.Optimizer, o.evaluate)
	if err != nil {
		return err
	}
	u.record(p, o, stats)
	return nil
}

// record appends what one optimiser step did.
func (u *updater) record(p planned, o *objective, stats policy.StepStats) {
	t := o.total.Tally
	positive, negative := t.ClipFractionPositive(), t.ClipFractionNegative()
	index := len(u.result.Updates)
	if index == 0 && u.imitation == nil {
		u.result.LogProbDrift = t.Drift()
	}
	var source *string
	if u.source != "" {
		source = new(u.source)
	}
	u.result.Updates = append(u.result.Updates, schema.UpdateRow{
		Step: u.cfg.Step, OptimizerStep: stats.Step, Minibatch: int32(index), Rows: int32(t.Rows), Tokens: t.Tokens,
		Loss: o.total.Loss, KL: t.KL(), ClipFraction: t.ClipFraction(), Entropy: o.entropy, RatioMax: t.RatioMax(),
		GradNorm: stats.GradNorm, LR: u.cfg.Optimizer.LR, ClipFractionPositive: &positive, ClipFractionNegative: &negative, ReferenceKL: o.divergence(), Source: source,
	})
	u.result.Details = append(u.result.Details, Detail{
		Epoch: p.epoch, LowerClipFraction: t.LowerClipFraction(), RatioMin: t.RatioMin(), LogProbDrift: t.Drift(),
		Clipped: stats.Clipped, Microbatches: len(p.micros),
	})
}
