package learner

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
)

// Smaller says that an engine ran out of memory and the micro-batches were made smaller. The result then differs by
// rounding from that of an engine with more memory.
type Smaller struct {
	From, To int // tokens of the largest micro-batch before, and the limit after
}

// outOfMemoryError says that the micro-batches cannot be made small enough. It wraps the engine's error.
type outOfMemoryError struct {
	Smaller *Smaller // the size that was tried; nil if each micro-batch already was one sequence
	Err     error
}

// Error says which sizes of micro-batches were tried.
func (e *outOfMemoryError) Error() string {
	if e.Smaller == nil {
		return fmt.Sprintf("%v (each micro-batch is one sequence already)", e.Err)
	}
	return fmt.Sprintf(
		"%v (micro-batches of %d tokens at most were tried, after %d)", e.Err, e.Smaller.To, e.Smaller.From,
	)
}

// Unwrap returns the engine's error.
func (e *outOfMemoryError) Unwrap() error { return e.Err }

// makeSmaller halves the micro-batches after an error of memory, and reports whether another try makes sense: not after
// any other error, not a second time, not where each is one sequence.
func (st *stepper) makeSmaller(err error, shares ...share) bool {
	if st.smaller != nil || !errors.Is(err, policy.ErrOutOfMemory) {
		return false
	}
	largest := 0
	for _, s := range shares {
		for _, rows := range s.micros {
			if len(rows) > 1 {
				largest = max(largest, tokensOf(rows, s.sequence))
			}
		}
	}
	if largest == 0 {
		return false
	}
	st.smaller = &Smaller{From: largest, To: max(1, largest/2)}
	st.limit = st.smaller.To
	slog.Warn(
		"the engine's memory is full: smaller micro-batches from here on", "role", st.role, "from_tokens",
		st.smaller.From, "to_tokens", st.smaller.To, "error", err,
	)
	return true
}

func tokensOf(rows []int, sequence func(int) []int32) (n int) {
	for _, i := range rows {
		n += len(sequence(i))
	}
	return n
}

// cut packs the shares' rows again if the plan was made before the micro-batches became smaller.
func (st *stepper) cut(shares []share) {
	if st.smaller == nil {
		return
	}
	for i := range shares {
		s := &shares[i]
		before := len(s.micros)
		s.micros = pack(slices.Concat(s.micros...), func(k int) int { return len(s.sequence(k)) }, st.limit)
		st.total += len(s.micros) - before
	}
}

// explained adds to an out-of-memory error which sizes were tried.
func (st *stepper) explained(err error) error {
	if !errors.Is(err, policy.ErrOutOfMemory) {
		return err
	}
	return &outOfMemoryError{Smaller: st.smaller, Err: err}
}
