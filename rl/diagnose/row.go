package diagnose

import (
	"errors"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// Row is one row of tokens, a trajectory or one turn of it. Each diagnosis names the slices that it
// reads; those are as long as Mask, the others may be missing.
type Row struct {
	Mask       []int32   // 1 for tokens the policy produced, else 0
	LogProbs   []float64 // of the current policy, nats
	Old        []float64 // of the behaviour policy, nats
	Reference  []float64 // of the reference policy, nats
	Advantages []float64
	Entropy    []float64 // of the policy at each token, nats
}

// ErrBadInput is the cause of every error about a diagnosis's input.
var ErrBadInput = errors.New("bad input")

// column is one slice of a row with its name.
type column struct {
	name   string
	values []float64
	most   float64 // greatest value that makes sense
}

// slack is how far above 0 a log-probability may lie by rounding.
const slack = 1e-4

func (r Row) logProbs() column   { return column{"log-probability", r.LogProbs, slack} }
func (r Row) old() column        { return column{"old log-probability", r.Old, slack} }
func (r Row) reference() column  { return column{"reference log-probability", r.Reference, slack} }
func (r Row) advantages() column { return column{"advantage", r.Advantages, exact.Limit} }
func (r Row) entropy() column    { return column{"entropy", r.Entropy, exact.Limit} }

// check reports what makes a row unusable, naming the row and the token.
func (r Row) check(row int, columns ...column) error {
	for t, m := range r.Mask {
		if m != 0 && m != 1 {
			return fmt.Errorf("%w: mask of row %d, token %d is %d, want 0 or 1", ErrBadInput, row, t, m)
		}
	}
	for _, c := range columns {
		if len(c.values) != len(r.Mask) {
			return fmt.Errorf(
				"%w: row %d has %s of %d tokens and a mask of %d", ErrBadInput, row, c.name, len(c.values), len(r.Mask),
			)
		}
		for t, v := range c.values {
			if r.Mask[t] == 1 && (!usable(v) || v > c.most) {
				return fmt.Errorf("%w: %s of row %d, token %d is %g", ErrBadInput, c.name, row, t, v)
			}
		}
	}
	return nil
}

// usable reports whether v is finite and its square too.
func usable(v float64) bool { return math.Abs(v) <= exact.Limit }

// checkValues reports the first number that cannot be used.
func checkValues(name string, values []float64) error {
	for i, v := range values {
		if !usable(v) {
			return fmt.Errorf("%w: %s %d is %g", ErrBadInput, name, i, v)
		}
	}
	return nil
}

// checkCounts reports the first negative count.
func checkCounts(name string, i int, counts ...int) error {
	for _, n := range counts {
		if n < 0 {
			return fmt.Errorf("%w: %s %d has a negative count: %v", ErrBadInput, name, i, counts)
		}
	}
	return nil
}

// share is part/whole, or 0 if the denominator is 0.
func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// meanOf is sum/n, or 0 if the denominator is 0.
func meanOf(sum float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// roundedShare is ⌈share·n⌉, where a product that misses a whole number by rounding counts as it.
func roundedShare(share float64, n int) int {
	return min(n, int(math.Ceil(share*float64(n)-1e-9)))
}
