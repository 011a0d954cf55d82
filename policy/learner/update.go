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

// Refusals of rows that lack what the objective needs.
var (
	ErrNoLogProbs  = errors.New("old log-probabilities are null") // of imported rows
	ErrNoReference = errors.New("reference log-probabilities are null")
	ErrNoRollout   = errors.New("the rollout's log-probabilities are null")
)

// Config says how a batch becomes optimiser steps.
type Config struct {
	Step             int32 // of the run; copied to the rows of the record
	Minibatches      int   // optimiser steps per epoch; fewer when there are fewer rows
	MinibatchRows    int   // rows of one optimiser step at most; 0 cuts by Minibatches alone
	Epochs           int
	MicrobatchTokens int                // bound on the tokens of one forward pass
	Objective        loss.Objective     // what is minimised
	Temperature      float64            // of the sampling that gave the batch
	Optimizer        policy.StepOptions // LR is this update's
	Shuffle          *rand.Rand         // fresh and seeded: all of the update's draws of rows
	Tokens           *rand.Rand         // the same for losses that draw tokens; nil where none does
	Imitation        *Imitation         // of replayed rows, beside the batch; nil where nothing is ever replayed
}

func (c Config) validate() error {
	switch {
	case c.Minibatches < 1 || c.Epochs < 1 || c.MicrobatchTokens < 1:
		return fmt.Errorf("minibatches, epochs and microbatch_tokens must be ≥ 1, got %d, %d and %d", c.Minibatches, c.Epochs, c.MicrobatchTokens)
	case c.MinibatchRows < 0:
		return fmt.Errorf("minibatch_rows must be ≥ 0, got %d", c.MinibatchRows)
	case c.Objective.Policy == nil:
		return errors.New("a policy loss is needed")
	case c.Shuffle == nil:
		return errors.New("a random stream for the shuffle is needed")
	case !(c.Temperature > 0) || math.IsInf(c.Temperature, 0):
		return fmt.Errorf("temperature must be finite and > 0, got %g", c.Temperature)
	}
	return c.Objective.Validate()
}

// Result is what an update did. A batch without a loss token gives no Updates: nothing moved.
type Result struct {
	// Updates holds a row for each mini-batch; PolicyBefore and PolicyAfter are the caller's. An optimiser
	// step takes one mini-batch, or in a joint update one of each source, whose rows then share it.
	Updates []schema.UpdateRow
	Details []Detail // alongside Updates: statistics that the record's rows do not hold
	Rows    int      // live rows of the batch, and of what is imitated
	Tokens  int64    // their loss tokens, each row once
	// LogProbDrift is the greatest |new − old| over the batch's first mini-batch, before any step.
	LogProbDrift float64
	Smaller      *Smaller // nil unless the engine's memory was full
}

// Detail holds further statistics of one mini-batch.
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
	rows, err := prepare(batch, cfg.Objective)
	if err != nil {
		return Result{}, fmt.Errorf("update policy: %w", err)
	}
	var result Result
	l := &lane{engine: engine, role: policy.RolePolicy, temperature: cfg.Temperature, outputs: policy.OutLogProb | policy.OutEntropy, progress: progress, limit: cfg.MicrobatchTokens}
	parts := []*updater{{cfg: cfg, rows: rows, lane: l, result: &result}}
	if cfg.Imitation != nil {
		again, err := cfg.Imitation.updater(cfg, l, &result)
		if err != nil {
			return Result{}, fmt.Errorf("update policy: imitation: %w", err)
		}
		parts[0].source = schema.SourcePolicy
		parts = append(parts, again)
	}
	for _, u := range parts {
		u.count()
	}
	for _, s := range strides(parts, cfg.Imitation != nil && cfg.Imitation.Joint) {
		err := s.take(ctx, l, cfg.Optimizer)
		result.Smaller = l.smaller
		if err != nil {
			return result, fmt.Errorf("update policy: %s: %w", s, err)
		}
	}
	return result, nil
}

// row is a live batch row.
type row struct {
	tokens []int32
	loss   loss.Row[float32] // LogProbs and Entropies stay empty until a forward pass fills them
	// The critic's values before the update and what it learns; nil without a critic.
	values, returns []float32
}

// prepare checks the batch and returns its live rows in canonical order.
func prepare(batch []schema.BatchRow, o loss.Objective) ([]row, error) {
	sorted := slices.Clone(batch)
	slices.SortFunc(sorted, func(a, b schema.BatchRow) int {
		return cmp.Or(cmp.Compare(a.GroupID, b.GroupID), cmp.Compare(a.TrajectoryID, b.TrajectoryID), cmp.Compare(turnOf(a), turnOf(b)))
	})
	out := make([]row, 0, len(sorted))
	for _, b := range sorted {
		r, err := prepareRow(b, o)
		if err != nil {
			return nil, fmt.Errorf("trajectory %s of group %s: %w", b.TrajectoryID, b.GroupID, err)
		}
		if live(b.LossMask) {
			r.loss.Sample, r.loss.Turn = int32(len(out)), turnOf(b)
			out = append(out, r)
		}
	}
	return out, nil
}

// turnOf is the turn that a row is; 0 of a whole trajectory.
func turnOf(b schema.BatchRow) int32 {
	if b.Turn == nil {
		return 0
	}
	return *b.Turn
}

func prepareRow(b schema.BatchRow, o loss.Objective) (row, error) {
	if b.OldLogProbs == nil {
		return row{}, ErrNoLogProbs
	}
	if err := checkTokens(b.TokenIDs, b.LossMask); err != nil {
		return row{}, err
	}
	r := row{tokens: b.TokenIDs, values: b.Values, returns: b.Returns, loss: loss.Row[float32]{
		Old: b.OldLogProbs, Advantages: b.Advantages, Mask: b.LossMask, Count: b.Count, Group: b.GroupID,
	}}
	if o.KL != nil {
		if r.loss.Ref = b.ReferenceLogProbs; r.loss.Ref == nil {
			return r, ErrNoReference
		}
	}
	if o.TIS != nil {
		if r.loss.Rollout = b.RolloutLogProbs; r.loss.Rollout == nil {
			return r, ErrNoRollout
		}
	}
	return r, r.loss.Validate()
}

// updater is the state of one update, or of the part of it that is on the same source of rows.
type updater struct {
	cfg       Config
	rows      []row
	lane      *lane
	evaluator loss.Evaluator[float32]
	result    *Result
	planned   []planned
	source    string // of the rows, for the record; "" where there is one only
}

// planned is one mini-batch.
type planned struct {
	epoch  int
	rows   []int
	micros [][]int
}

// count adds the rows to the result.
func (u *updater) count() {
	u.result.Rows += len(u.rows)
	for _, r := range u.rows {
		u.result.Tokens += int64(r.loss.Tokens())
	}
}

// minibatches is the number of mini-batches that the settings cut an epoch into.
func (u *updater) minibatches() int {
	n := u.cfg.Minibatches
	if most := u.cfg.MinibatchRows; most > 0 {
		n = (len(u.rows) + most - 1) / most
	}
	return min(n, len(u.rows))
}

// plan shuffles the rows once per epoch and cuts them into n mini-batches of like numbers of rows.
func (u *updater) plan(n int) {
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

// prepareStep counts what the micro-batches of a mini-batch share. Objectives that judge tokens by the
// whole mini-batch (covariance rules, the shrinking sequence mask) take a forward pass over it first,
// which keeps nothing; its outputs are those that the pass of each micro-batch gives again.
func (u *updater) prepareStep(ctx context.Context, p planned) (loss.Plan, error) {
	if !u.cfg.Objective.NeedsMinibatch() {
		return u.cfg.Objective.Plan(u.shapes(p.rows))
	}
	sequences := make([][]int32, len(p.rows))
	for k, i := range p.rows {
		sequences[k] = u.sequence(i)
	}
	req := policy.ForwardRequest{Role: policy.RolePolicy, Sequences: sequences, Temperature: u.cfg.Temperature, Outputs: u.lane.outputs}
	out, err := Outputs(ctx, u.lane.engine, req, u.lane.limit, nil)
	if u.lane.makeSmaller(err, share{micros: p.micros, sequence: u.sequence}) {
		out, err = Outputs(ctx, u.lane.engine, req, u.lane.limit, nil)
	}
	if err != nil {
		return loss.Plan{}, u.lane.explained(err)
	}
	plan, err := loss.Prepare(u.cfg.Objective, u.filled(p.rows, out), u.cfg.Tokens)
	for k, marks := range plan.Marks {
		u.rows[p.rows[k]].loss.Marks = marks
	}
	return plan, err
}

// share evaluates a mini-batch as its micro-batches come, and adds them up in total.
func (u *updater) share(p planned, plan loss.Plan, total *loss.Result[float32]) share {
	eval := func(rows []int, out policy.TokenOutputs) (policy.Cotangents, error) {
		if err := u.markMicrobatch(rows, out); err != nil {
			return policy.Cotangents{}, err
		}
		part, err := u.evaluator.Evaluate(u.cfg.Objective, u.filled(rows, out), plan)
		total.Loss += part.Loss
		total.Tally.Merge(part.Tally)
		return policy.Cotangents{LogProbs: part.Cotangents, Entropies: part.EntropyCotangents}, err
	}
	return share{p.micros, u.sequence, eval, func() { *total = loss.Result[float32]{} }}
}

// markMicrobatch selects tokens out of one micro-batch, for covariance rules of that scope.
func (u *updater) markMicrobatch(rows []int, out policy.TokenOutputs) error {
	if o := u.cfg.Objective; o.NeedsMinibatch() || !o.NeedsMarks() {
		return nil
	}
	marked, err := loss.Prepare(u.cfg.Objective, u.filled(rows, out), u.cfg.Tokens)
	for k, marks := range marked.Marks {
		u.rows[rows[k]].loss.Marks = marks
	}
	return err
}

func (u *updater) sequence(i int) []int32 { return u.rows[i].tokens }

// record appends what one optimiser step did on the mini-batch.
func (u *updater) record(p planned, total loss.Result[float32], stats policy.StepStats) {
	t := total.Tally
	positive, negative := t.ClipFractionPositive(), t.ClipFractionNegative()
	index := len(u.result.Updates)
	if index == 0 && u.source != schema.SourceReplay {
		u.result.LogProbDrift = t.Drift()
	}
	var source *string
	if u.source != "" {
		source = new(u.source)
	}
	outside := t.OutOfBounds()
	done := schema.UpdateRow{
		Step: u.cfg.Step, OptimizerStep: stats.Step, Minibatch: int32(index), Rows: int32(t.Rows), Tokens: t.Tokens,
		Loss: total.Loss, KL: t.KL(), ClipFraction: t.ClipFraction(), Entropy: t.Entropy(), RatioMax: t.RatioMax(),
		GradNorm: stats.GradNorm, LR: u.cfg.Optimizer.LR, ClipFractionPositive: &positive, ClipFractionNegative: &negative, ReferenceKL: u.divergence(t),
		Source: source, BelowPositive: &outside.PositiveBelow, AboveNegative: &outside.NegativeAbove, DualClipFraction: new(t.LowerClipFraction()),
	}
	describeAdvantages(&done, u.rows, p.rows)
	u.result.Updates = append(u.result.Updates, done)
	u.result.Details = append(u.result.Details, Detail{
		Epoch: p.epoch, LowerClipFraction: t.LowerClipFraction(), RatioMin: t.RatioMin(), LogProbDrift: t.Drift(),
		Clipped: stats.Clipped, Microbatches: len(p.micros),
	})
}

// divergence is the mean estimate against the reference; nil where no term takes it.
func (u *updater) divergence(t loss.Tally) *float64 {
	if u.cfg.Objective.KL == nil {
		return nil
	}
	return new(t.RefKL())
}

// shapes returns the masks and counts of rows.
func (u *updater) shapes(rows []int) (masks [][]int32, counts []int32) {
	for _, i := range rows {
		masks = append(masks, u.rows[i].loss.Mask)
		counts = append(counts, u.rows[i].loss.Count)
	}
	return masks, counts
}

// filled joins the rows with the outputs of a forward pass.
func (u *updater) filled(rows []int, out policy.TokenOutputs) []loss.Row[float32] {
	filled := make([]loss.Row[float32], len(rows))
	for k, i := range rows {
		filled[k] = u.rows[i].loss
		filled[k].LogProbs, filled[k].Entropies = out.LogProbs[k], out.Entropies[k]
	}
	return filled
}
