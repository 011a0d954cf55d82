package learner

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
)

// Smaller says that an engine's memory was full and the micro-batches were cut anew. What is learnt then differs
// by rounding from what an engine with more memory learns.
type Smaller struct {
	From, To int // tokens of the largest micro-batch, and of any from then on
}

// OutOfMemoryError says that the micro-batches cannot be made small enough. It wraps what the engine says of its memory.
type OutOfMemoryError struct {
	Smaller *Smaller // what was tried; nil where each micro-batch was one sequence already
	Err     error
}

func (e *OutOfMemoryError) Error() string {
	if e.Smaller == nil {
		return fmt.Sprintf("%v (each micro-batch is one sequence already)", e.Err)
	}
	return fmt.Sprintf("%v (micro-batches of %d tokens at most were tried, after %d)", e.Err, e.Smaller.To, e.Smaller.From)
}

func (e *OutOfMemoryError) Unwrap() error { return e.Err }

// makeSmaller halves the micro-batches after an error of memory, and reports whether another try makes sense: not after
// any other error, not a second time, not where each is one sequence.
func (l *lane) makeSmaller(err error, shares ...share) bool {
	if l.smaller != nil || !errors.Is(err, policy.ErrOutOfMemory) {
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
	l.smaller = &Smaller{From: largest, To: max(1, largest/2)}
	l.limit = l.smaller.To
	slog.Warn("the engine's memory is full: smaller micro-batches from here on", "role", l.role, "from_tokens", l.smaller.From, "to_tokens", l.smaller.To, "error", err)
	return true
}

func tokensOf(rows []int, sequence func(int) []int32) (n int) {
	for _, i := range rows {
		n += len(sequence(i))
	}
	return n
}

// cut packs the shares' rows anew where the plan was made before the micro-batches became smaller.
func (l *lane) cut(shares []share) {
	if l.smaller == nil {
		return
	}
	for i := range shares {
		s := &shares[i]
		before := len(s.micros)
		s.micros = pack(slices.Concat(s.micros...), func(k int) int { return len(s.sequence(k)) }, l.limit)
		l.total += len(s.micros) - before
	}
}

// explained says of an error of memory what was tried.
func (l *lane) explained(err error) error {
	if !errors.Is(err, policy.ErrOutOfMemory) {
		return err
	}
	return &OutOfMemoryError{Smaller: l.smaller, Err: err}
}
