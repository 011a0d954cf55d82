package loss

import (
	"errors"
	"fmt"
	"math"
)

// Row is one trajectory as a loss sees it. All slices are equally long.
type Row struct {
	LogProbs   []float64 // of the current policy
	Old        []float64 // of the behaviour policy
	Advantages []float64 // A·ω
	Mask       []int32   // 1 for tokens the policy produced, else 0
	Count      int32     // N ≥ 1: how many copies denominators and statistics see
}

// Tokens returns T, the number of tokens under the mask.
func (r Row) Tokens() int { return countMask(r.Mask) }

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

// ErrBadRow is behind every refusal of a row.
var ErrBadRow = errors.New("bad row")

// oldSlack is how far above 0 a log-probability may lie by rounding.
const oldSlack = 1e-4

// Validate reports what makes a row unusable in a policy loss, its new log-probabilities aside, so
// that a batch can be refused before anything is computed.
func (r Row) Validate() error {
	if err := r.checkMask(); err != nil {
		return err
	}
	if len(r.Old) != len(r.Mask) || len(r.Advantages) != len(r.Mask) {
		return fmt.Errorf("%w: %d old log-probabilities and %d advantages for %d tokens",
			ErrBadRow, len(r.Old), len(r.Advantages), len(r.Mask))
	}
	for t, m := range r.Mask {
		if m == 0 {
			continue
		}
		if !finite(r.Old[t]) || r.Old[t] > oldSlack {
			return fmt.Errorf("%w: old log-probability of token %d is %g", ErrBadRow, t, r.Old[t])
		}
		if !finite(r.Advantages[t]) {
			return fmt.Errorf("%w: advantage of token %d is %g", ErrBadRow, t, r.Advantages[t])
		}
	}
	return nil
}

// checkMask reports a mask or count that cannot be used.
func (r Row) checkMask() error {
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

// checkLogProbs reports new log-probabilities that cannot be used.
func (r Row) checkLogProbs() error {
	if len(r.LogProbs) != len(r.Mask) {
		return fmt.Errorf("%w: %d log-probabilities for %d mask entries", ErrBadRow, len(r.LogProbs), len(r.Mask))
	}
	for t, m := range r.Mask {
		if m == 1 && !finite(r.LogProbs[t]) {
			return fmt.Errorf("%w: log-probability of token %d is %g", ErrBadRow, t, r.LogProbs[t])
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
