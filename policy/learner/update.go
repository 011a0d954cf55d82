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

// Errors for rows that lack what the objective needs.
var (
	errNoLogProbs  = errors.New("old log-probabilities are null") // for example imported rows
	errNoReference = errors.New("reference log-probabilities are null")
	errNoRollout   = errors.New("the rollout's log-probabilities are null")
)

// Config describes how a batch becomes optimiser steps.
type Config struct {
	Minibatches      int // optimiser steps per epoch; fewer if there are fewer rows
	MinibatchRows    int // maximum rows of one optimiser step; 0 = split only by Minibatches
	Epochs           int
	MicrobatchTokens int                // bound on the tokens of one forward pass
	SharePrefixes    bool               // rows that begin with the same prompt compute it once; changes rounding alone
	Objective        loss.Objective     // the objective to minimise
	Temperature      float64            // temperature of the sampling that produced the batch
	Optimizer        policy.StepOptions // LR is the rate of this update
	Shuffle          *rand.Rand         // fresh and seeded; source of all random draws of rows
	Tokens           *rand.Rand         // the same for losses that draw tokens; nil if none does
	Imitation        *Imitation         // of replayed rows, in addition to the batch; nil without replay
}

func (c Config) validate() error {
	switch {
	case c.Minibatches < 1 || c.Epochs < 1 || c.MicrobatchTokens < 1:
		return fmt.Errorf(
			"minibatches, epochs and microbatch_tokens must be ≥ 1, got %d, %d and %d", c.Minibatches, c.Epochs,
			c.MicrobatchTokens,
		)
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

// Result is the result of an update. A batch without loss tokens gives no Updates, and the policy does not change.
type Result struct {
	// Updates holds a row for each mini-batch. The caller sets PolicyBefore and PolicyAfter. An optimiser step takes
	// one mini-batch; in a joint update it takes one of each source, and their rows share the step.
	Updates []schema.UpdateRow
	Details []Detail // alongside Updates: statistics that the record's rows do not hold
	Rows    int      // live rows of the batch and of the replayed rows
	Tokens  int64    // their loss tokens; each row counts once
	// LogProbDrift is the largest |new − old| over the batch's first mini-batch, before any step.
	LogProbDrift float64
	Smaller      *Smaller // nil unless the engine ran out of memory
}

// Detail holds further statistics of one mini-batch.
type Detail struct {
	Epoch             int
	LowerClipFraction float64 // tokens on which the dual clip was active
	RatioMin          float64
	LogProbDrift      float64 // largest |new − old|
	Clipped           bool    // the gradient's norm was clipped
	Microbatches      int
}

// Update takes one optimiser step per mini-batch and epoch over the batch. After an error, the trainer keeps the steps
// already taken and no gradient. Load the checkpoint again before another try.
func Update(
	ctx context.Context, trainer policy.Trainer, batch []schema.BatchRow, cfg Config, progress Progress,
) (Result, error) {
	if err := cfg.validate(); err != nil {
		return Result{}, fmt.Errorf("update policy: %w", err)
	}
	rows, err := prepare(batch, cfg.Objective)
	if err != nil {
		return Result{}, fmt.Errorf("update policy: %w", err)
	}
	var result Result
	lacks := policy.LackedBy(trainer)
	if cfg.Objective.Entropy != nil && lacks.Has(policy.OutEntropy) {
		return Result{}, fmt.Errorf("update policy: %w: the loss has an entropy term, and the trainer has no entropies",
			policy.ErrBadRequest)
	}
	st := &stepper{
		trainer: trainer, role: policy.RolePolicy, temperature: cfg.Temperature,
		outputs: policy.OutLogProb | policy.OutEntropy&^lacks, progress: progress, limit: cfg.MicrobatchTokens,
	}
	parts := []*updater{{cfg: cfg, rows: rows, stepper: st, result: &result}}
	if cfg.Imitation != nil {
		again, err := cfg.Imitation.updater(cfg, st, &result)
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
		err := s.take(ctx, st, cfg.Optimizer)
		result.Smaller = st.smaller
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
	// The critic's values before the update and its targets; nil without a critic.
	values, returns []float32
	number          int32 // in the batch, in its canonical order
}

// prepare checks the batch and returns its live rows in canonical order.
func prepare(batch []schema.BatchRow, o loss.Objective) ([]row, error) {
	sorted := slices.Clone(batch)
	slices.SortFunc(sorted, func(a, b schema.BatchRow) int {
		return cmp.Or(
			cmp.Compare(a.GroupID, b.GroupID), cmp.Compare(a.TrajectoryID, b.TrajectoryID),
			cmp.Compare(turnOf(a), turnOf(b)),
		)
	})
	out := make([]row, 0, len(sorted))
	for i, b := range sorted {
		r, err := prepareRow(b, o)
		if err != nil {
			return nil, fmt.Errorf("trajectory %s of group %s: %w", b.TrajectoryID, b.GroupID, err)
		}
		if live(b.LossMask) {
			r.loss.Sample, r.loss.Turn, r.number = int32(len(out)), turnOf(b), int32(i)
			out = append(out, r)
		}
	}
	return out, nil
}

// turnOf returns the turn of a row, or 0 for a whole trajectory.
func turnOf(b schema.BatchRow) int32 {
	if b.Turn == nil {
		return 0
	}
	return *b.Turn
}

func prepareRow(b schema.BatchRow, o loss.Objective) (row, error) {
	if b.OldLogProbs == nil {
		return row{}, errNoLogProbs
	}
	if err := checkTokens(b.TokenIDs, b.LossMask); err != nil {
		return row{}, err
	}
	r := row{tokens: b.TokenIDs, values: b.Values, returns: b.Returns, loss: loss.Row[float32]{
		Old: b.OldLogProbs, Advantages: b.Advantages, Mask: b.LossMask, Count: b.Count, Group: b.GroupID,
	}}
	if o.KL != nil {
		if r.loss.Ref = b.ReferenceLogProbs; r.loss.Ref == nil {
			return r, errNoReference
		}
	}
	if o.TIS != nil {
		if r.loss.Rollout = b.RolloutLogProbs; r.loss.Rollout == nil {
			return r, errNoRollout
		}
	}
	return r, r.loss.Validate()
}

// updater is the state of one update, or of the part of an update with rows from one source.
type updater struct {
	cfg       Config
	rows      []row
	stepper   *stepper
	evaluator loss.Evaluator[float32]
	result    *Result
	planned   []planned
	source    string // source of the rows, for the record; "" if there is only one
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

// minibatches returns the number of mini-batches of an epoch under the settings.
func (u *updater) minibatches() int {
	n := u.cfg.Minibatches
	if most := u.cfg.MinibatchRows; most > 0 {
		n = (len(u.rows) + most - 1) / most
	}
	return min(n, len(u.rows))
}

// plan shuffles the rows once per epoch and splits them into n mini-batches of similar size.
func (u *updater) plan(n int) {
	for epoch := range u.cfg.Epochs {
		order := u.cfg.Shuffle.Perm(len(u.rows))
		for k := range n {
			rows := order[k*len(order)/n : (k+1)*len(order)/n]
			micros := u.pack(rows)
			u.planned = append(u.planned, planned{epoch: epoch, rows: rows, micros: micros})
			u.stepper.total += len(micros)
		}
	}
}

// pack splits rows into micro-batches. Where rows share prompts, those of a group stay together.
func (u *updater) pack(rows []int) [][]int {
	length := func(i int) int { return len(u.rows[i].tokens) }
	if !u.cfg.SharePrefixes {
		return pack(rows, length, u.cfg.MicrobatchTokens)
	}
	return fill(slices.Sorted(slices.Values(rows)), length, u.cfg.MicrobatchTokens) // rows are in the order of groups
}

// prepareStep counts what the micro-batches of a mini-batch share. Some objectives judge tokens by the whole mini-batch
// (covariance rules, the shrinking sequence mask). For those, prepareStep runs a forward pass over the mini-batch
// without keeping activations. The later passes of the micro-batches compute the same outputs again.
func (u *updater) prepareStep(ctx context.Context, p planned) (loss.Plan, error) {
	if !u.cfg.Objective.NeedsMinibatch() {
		return u.cfg.Objective.Plan(u.shapes(p.rows))
	}
	sequences := make([][]int32, len(p.rows))
	for k, i := range p.rows {
		sequences[k] = u.sequence(i)
	}
	req := policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: sequences, Temperature: u.cfg.Temperature, Outputs: u.stepper.outputs,
	}
	out, err := Outputs(ctx, u.stepper.trainer, req, u.stepper.limit, nil)
	if u.stepper.makeSmaller(err, share{micros: p.micros, sequence: u.sequence}) {
		out, err = Outputs(ctx, u.stepper.trainer, req, u.stepper.limit, nil)
	}
	if err != nil {
		return loss.Plan{}, u.stepper.explained(err)
	}
	plan, err := loss.Prepare(u.cfg.Objective, u.filled(p.rows, out), u.cfg.Tokens)
	for k, marks := range plan.Marks {
		u.rows[p.rows[k]].loss.Marks = marks
	}
	return plan, err
}

// share returns a share that evaluates the micro-batches of a mini-batch and sums the results in total.
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
	s := share{micros: p.micros, sequence: u.sequence, eval: eval, forget: func() { *total = loss.Result[float32]{} }}
	if u.cfg.SharePrefixes {
		s.leading = u.leading
	}
	return s
}

// leading returns the number of tokens before the first loss token.
func (u *updater) leading(i int) int {
	return slices.IndexFunc(u.rows[i].loss.Mask, func(m int32) bool { return m != 0 })
}

// markMicrobatch selects tokens of one micro-batch, for covariance rules with that scope.
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

// record appends the result of one optimiser step on the mini-batch.
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
		OptimizerStep: stats.Step, Minibatch: int32(index), Rows: int32(t.Rows), Tokens: t.Tokens,
		Loss: total.Loss, KL: t.KL(), ClipFraction: t.ClipFraction(), Entropy: u.entropy(t), RatioMax: t.RatioMax(),
		RatioMin: new(t.RatioMin()),
		GradNorm: normOf(stats), LR: u.cfg.Optimizer.LR, ClipFractionPositive: &positive,
		ClipFractionNegative: &negative, ReferenceKL: u.divergence(t), Source: source,
		BelowPositive: &outside.PositiveBelow, AboveNegative: &outside.NegativeAbove,
		DualClipFraction: new(t.LowerClipFraction()),
		Epoch:            new(int32(p.epoch)), BatchRows: u.numbers(p.rows),
	}
	describeAdvantages(&done, u.rows, p.rows)
	u.result.Updates = append(u.result.Updates, done)
	u.result.Details = append(u.result.Details, Detail{
		Epoch: p.epoch, LowerClipFraction: t.LowerClipFraction(), RatioMin: t.RatioMin(), LogProbDrift: t.Drift(),
		Clipped: stats.Clipped, Microbatches: len(p.micros),
	})
}

// numbers returns the numbers that rows have in the batch, which also holds rows without loss tokens.
func (u *updater) numbers(rows []int) []int32 {
	out := make([]int32, len(rows))
	for k, i := range rows {
		out[k] = u.rows[i].number
	}
	return out
}

// divergence returns the mean estimate of the divergence from the reference, or nil if the objective has no such term.
func (u *updater) divergence(t loss.Tally) *float64 {
	if u.cfg.Objective.KL == nil {
		return nil
	}
	return new(t.RefKL())
}

// entropy returns the mean entropy, or nil if the trainer computes none.
func (u *updater) entropy(t loss.Tally) *float64 {
	if !u.stepper.outputs.Has(policy.OutEntropy) {
		return nil
	}
	return new(t.Entropy())
}

// normOf returns the norm of a step's gradient, or nil if the trainer does not tell.
func normOf(s policy.StepStats) *float64 {
	if math.IsNaN(s.GradNorm) {
		return nil
	}
	return &s.GradNorm
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
		filled[k].LogProbs = out.LogProbs[k]
		if u.stepper.outputs.Has(policy.OutEntropy) {
			filled[k].Entropies = out.Entropies[k]
		}
	}
	return filled
}
