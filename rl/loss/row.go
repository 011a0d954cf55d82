package loss

import (
	"errors"
	"fmt"
	"math"
)

// Float is the element type of rows and cotangents. Sums are float64 in either case.
type Float interface{ float32 | float64 }

// Row is one trajectory or turn as a loss sees it. Slices that are set are as long as Mask. A loss reads only the
// slices that it asks for, and of these only the tokens under the mask.
type Row[T Float] struct {
	LogProbs   []T     // of the current policy
	Old        []T     // proximal: the denominators of all ratios, fixed for the whole step (see doc.go)
	Advantages []T     // A·ω
	Mask       []int32 // 1 for tokens the policy produced, else 0
	Count      int32   // N ≥ 1: how many copies denominators and statistics see

	Rollout   []T     // log-probabilities that the sampler reported, temperature and top-p/k included; for TIS
	Ref       []T     // log-probabilities of the reference policy; for KL penalties
	Entropies []T     // of the current policy, nats; for the entropy term and its statistic
	Marks     []int32 // 1 for tokens that a covariance rule selected: Plan.Marks of this row

	// Group, Sample and Turn order the rows where an order is needed (the draws of Clip-Cov), so that results do
	// not depend on the order of the input. Rows that agree in all three keep the given order.
	Group        string
	Sample, Turn int32
}

// Tokens returns T, the number of tokens under the mask.
func (r Row[T]) Tokens() int { return countMask(r.Mask) }

// countMask returns how many entries of mask are set.
func countMask(mask []int32) int {
	n := 0
	for _, m := range mask {
		if m != 0 {
			n++
		}
	}
	return n
}

// ErrBadRow is the cause of every error about a row.
var ErrBadRow = errors.New("bad row")

// oldSlack is how far above 0 a log-probability may lie by rounding.
const oldSlack = 1e-4

// Validate reports what makes a row unusable in a policy loss, except for its new log-probabilities. So a batch
// can be refused before anything is computed.
func (r Row[T]) Validate() error {
	if err := r.checkMask(); err != nil {
		return err
	}
	if err := r.checkField("old log-probability", r.Old, oldSlack); err != nil {
		return err
	}
	return r.checkField("advantage", r.Advantages, math.Inf(1))
}

// checkMask reports a mask or count that cannot be used.
func (r Row[T]) checkMask() error {
	if r.Count < 1 {
		return fmt.Errorf("%w: count must be ≥ 1, got %d", ErrBadRow, r.Count)
	}
	for t, m := range r.Mask {
		if m != 0 && m != 1 {
			return fmt.Errorf("%w: mask of token %d is %d, want 0 or 1", ErrBadRow, t, m)
		}
	}
	return nil
}

// checkField reports a field without a finite value of at most limit for each token under the mask.
func (r Row[T]) checkField(name string, values []T, limit float64) error {
	if len(values) != len(r.Mask) {
		return fmt.Errorf("%w: %d values of %s for %d tokens", ErrBadRow, len(values), name, len(r.Mask))
	}
	for t, m := range r.Mask {
		if v := float64(values[t]); m != 0 && (!finite(v) || v > limit) {
			return fmt.Errorf("%w: %s of token %d is %g", ErrBadRow, name, t, v)
		}
	}
	return nil
}

func finite(v float64) bool { return v-v == 0 }

// checkLogProbs reports new log-probabilities that cannot be used.
func (r Row[T]) checkLogProbs() error {
	return r.checkField("log-probability", r.LogProbs, math.Inf(1))
}
