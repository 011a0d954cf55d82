package loss

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// Result is one micro-batch's share of a mini-batch's loss.
type Result[T Float] struct {
	Loss float64 // Policy − c_H·Entropy + c_KL·KL; the shares of one mini-batch add up to its loss
	// The aggregated terms without their coefficients; 0 for terms that the objective does not have.
	Policy, KL, Entropy float64

	// Cotangents is d(Loss)/d(logp), or d(Loss)/d(value) for a critic, by row and token; 0 off the mask.
	// It is nil if the objective is an entropy term alone.
	Cotangents [][]T
	// EntropyCotangents is d(Loss)/d(entropy); nil without an entropy bonus.
	EntropyCotangents [][]T
	Tally             Tally
}

// Evaluator evaluates objectives. It keeps its buffers between calls, so that only the first call allocates.
// The zero value is ready to use. Only one goroutine may call it at a time.
type Evaluator[T Float] struct {
	// Workers is the number of goroutines that share the rows; 0 means 1. It does not change results.
	Workers int

	cotangents, entropies shaped[T]
	sums                  []rowSums
	order                 []int
	workers               []*worker
	job                   job[T]
	critic                Surrogate
	criticRows            []Row[T]
}

// Evaluate returns a micro-batch's share of its mini-batch's objective, under the mini-batch's plan. The
// result is valid until the evaluator's next call. The order of rows does not change a bit of the loss, the
// statistics or a row's cotangents.
func (e *Evaluator[T]) Evaluate(o Objective, rows []Row[T], plan Plan) (Result[T], error) {
	e.job = job[T]{objective: o, inputs: o.inputs(), rows: rows, overRuns: o.runTerms(), plan: plan}
	j := &e.job
	defer func() { e.job = job[T]{} }() // the caller's rows are not kept
	if o.Policy != nil || o.KL != nil {
		j.cotangents = e.cotangents.allocate(rows)
	}
	if o.Entropy != nil && o.Entropy.Coefficient != 0 {
		j.entropies = e.entropies.allocate(rows)
	}
	e.sums = slices.Grow(e.sums[:0], len(rows))[:len(rows)]
	j.sums = e.sums
	e.run(j)
	for i := range e.sums {
		if err := e.sums[i].err; err != nil {
			return Result[T]{}, fmt.Errorf("evaluate loss of row %d: %w", i, err)
		}
	}
	out := e.total(o)
	out.Cotangents, out.EntropyCotangents = j.cotangents, j.entropies
	if !finite(out.Loss) {
		return Result[T]{}, fmt.Errorf("evaluate loss: it is not finite, got %g", out.Loss)
	}
	return out, nil
}

// Evaluate calls Evaluator.Evaluate once, with new buffers and a plain denominator.
func Evaluate[T Float](s Surrogate, rows []Row[T], d Denominator) (Result[T], error) {
	var e Evaluator[T]
	return e.Evaluate(Objective{Policy: s}, rows, Plan{Policy: d, Penalty: d})
}

// shaped is a reused buffer of slices shaped like rows.
type shaped[T Float] struct {
	flat []T
	rows [][]T
}

func (s *shaped[T]) allocate(rows []Row[T]) [][]T {
	n := 0
	for i := range rows {
		n += len(rows[i].Mask)
	}
	s.flat = slices.Grow(s.flat[:0], n)[:n]
	s.rows = s.rows[:0]
	for from, i := 0, 0; i < len(rows); i++ {
		to := from + len(rows[i].Mask)
		s.rows = append(s.rows, s.flat[from:to:to])
		from = to
	}
	return s.rows
}

// job is one call's work.
type job[T Float] struct {
	objective             Objective
	inputs                Inputs
	overRuns              bool
	rows                  []Row[T]
	plan                  Plan
	cotangents, entropies [][]T
	sums                  []rowSums
}

// run evaluates every row. Each row writes to its own places, so it does not matter which goroutine evaluates it.
func (e *Evaluator[T]) run(j *job[T]) {
	n := max(1, min(e.Workers, len(j.rows)))
	for len(e.workers) < n {
		e.workers = append(e.workers, newWorker())
	}
	if n == 1 {
		j.evaluate(e.workers[0], 0, len(j.rows))
		return
	}
	tokens := 0
	for i := range j.rows {
		tokens += len(j.rows[i].Mask)
	}
	var wait rescue.WaitGroup
	for k, from, seen := 0, 0, 0; k < n; k++ {
		to := from
		for to < len(j.rows) && (k == n-1 || seen*n < tokens*(k+1)) {
			seen += len(j.rows[to].Mask)
			to++
		}
		startEvaluate(&wait, j, e.workers[k], from, to)
		from = to
	}
	wait.Wait()
}

func startEvaluate[T Float](wait *rescue.WaitGroup, j *job[T], w *worker, from, to int) {
	wait.Go(func() { j.evaluate(w, from, to) })
}

func (j *job[T]) evaluate(w *worker, from, to int) {
	for i := from; i < to; i++ {
		j.sums[i] = evaluateRow(w, j, i)
	}
}

// rowSums are a row's contributions. Policy, KL and entropy are aggregated; the tally is the row's.
type rowSums struct {
	policy, kl, entropy float64
	tally               Tally
	err                 error
}

// compare orders rows by their contributions, so that a sum in this order does not depend on the order of the rows.
func (s *rowSums) compare(o *rowSums) int {
	switch { // most rows differ in the first term that the objective has
	case s.policy != o.policy:
		return cmp.Compare(s.policy, o.policy)
	case s.tally.drift != o.tally.drift:
		return cmp.Compare(s.tally.drift, o.tally.drift)
	case s.kl != o.kl:
		return cmp.Compare(s.kl, o.kl)
	case s.entropy != o.entropy:
		return cmp.Compare(s.entropy, o.entropy)
	case s.tally.kl != o.tally.kl:
		return cmp.Compare(s.tally.kl, o.tally.kl)
	case s.tally.entropy != o.tally.entropy:
		return cmp.Compare(s.tally.entropy, o.tally.entropy)
	case s.tally.tis != o.tally.tis:
		return cmp.Compare(s.tally.tis, o.tally.tis)
	}
	return cmp.Compare(s.tally.weight, o.tally.weight)
}

// total adds the rows up.
func (e *Evaluator[T]) total(o Objective) (out Result[T]) {
	e.order = e.order[:0]
	for i := range e.sums {
		e.order = append(e.order, i)
	}
	sums := e.sums
	slices.SortFunc(e.order, func(a, b int) int { return sums[a].compare(&sums[b]) })
	for _, i := range e.order {
		out.Policy += sums[i].policy
		out.KL += sums[i].kl
		out.Entropy += sums[i].entropy
		out.Tally.Merge(sums[i].tally)
	}
	out.Loss = out.Policy
	if o.KL != nil {
		out.Loss += o.KL.Coefficient * out.KL
	}
	if o.Entropy != nil {
		out.Loss -= o.Entropy.Coefficient * out.Entropy
	}
	return out
}

// check reports what makes a row unusable for a job. It is called only after a fault was detected.
func (j *job[T]) check(r Row[T]) error {
	errs := []error{r.checkMask()}
	field := func(read bool, name string, values []T, limit float64) {
		if read && errs[0] == nil {
			errs = append(errs, r.checkField(name, values, limit))
		}
	}
	o, none := j.objective, math.Inf(1)
	old, logp, adv := "old log-probability", "log-probability", "advantage"
	if j.inputs.has(values) {
		old, logp, adv = "old value", "value", "return"
	}
	limit := oldSlack
	if j.inputs.has(values) {
		limit = none
	}
	field(o.Policy != nil || o.KL != nil, logp, r.LogProbs, none)
	field(j.inputs.has(Behaviour), old, r.Old, limit)
	field(j.inputs.has(Behaviour), adv, r.Advantages, none)
	field(o.TIS != nil, "rollout log-probability", r.Rollout, none)
	field(o.KL != nil, "reference log-probability", r.Ref, none)
	field(o.Entropy != nil || r.Entropies != nil, "entropy", r.Entropies, none)
	if j.inputs.has(Marked) && len(r.Marks) != len(r.Mask) {
		errs = append(
			errs,
			fmt.Errorf("%w: %d marks for %d tokens; call Prepare to make them", ErrBadRow, len(r.Marks), len(r.Mask)),
		)
	}
	return errors.Join(errs...)
}

// shapeOK reports whether the slices that a job reads are as long as the mask.
func (j *job[T]) shapeOK(r *Row[T]) bool {
	n, o := len(r.Mask), &j.objective
	policy := o.Policy != nil
	return r.Count >= 1 &&
		(len(r.LogProbs) == n || !policy && o.KL == nil) &&
		(!j.inputs.has(Behaviour) || len(r.Old) == n && len(r.Advantages) == n) &&
		(o.TIS == nil || len(r.Rollout) == n) &&
		(o.KL == nil || len(r.Ref) == n) &&
		(o.Entropy == nil && r.Entropies == nil || len(r.Entropies) == n) &&
		(!j.inputs.has(Marked) || len(r.Marks) == n)
}
