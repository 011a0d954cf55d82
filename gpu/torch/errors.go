package torch

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// outOfMemoryError is policy.ErrOutOfMemory with the size of the call and the state of the memory.
type outOfMemoryError struct {
	Message string // the engine's
	Tokens  int    // of the call
	Longest int    // of its sequences, in tokens
	Memory  Memory // as of the last beat
	// Estimate is the result of Options.Estimate in bytes; 0 if there is none.
	Estimate int64
}

// Error describes the call and the memory at the time of the failure.
func (e *outOfMemoryError) Error() string {
	text := fmt.Sprintf("%v: %s", policy.ErrOutOfMemory, e.Message)
	if e.Tokens > 0 {
		text += fmt.Sprintf("; the call was of %d tokens, the longest sequence of %d", e.Tokens, e.Longest)
	}
	if e.Estimate > 0 {
		text += fmt.Sprintf("; the estimate was %d MiB", e.Estimate>>20)
	}
	if m := e.Memory; m.Peak > 0 {
		text += fmt.Sprintf("; %d MiB were allocated, %d MiB at the peak", m.Allocated>>20, m.Peak>>20)
	}
	return text
}

// Is reports whether target is policy.ErrOutOfMemory.
func (e *outOfMemoryError) Is(target error) bool { return target == policy.ErrOutOfMemory }

// contract converts an engine's error into an error of the contract. It returns false for an error that leaves the
// engine in an unknown state.
func contract(ctx context.Context, e wire.Error) (error, bool) {
	text := e.Message
	if e.Name != "" {
		text = e.Name + ": " + text
	}
	switch e.Kind {
	case wire.KindBadRequest, wire.KindUnsupported:
		return fmt.Errorf("%w: %s", policy.ErrBadRequest, text), true
	case wire.KindNotLoaded:
		return fmt.Errorf("%w: %s", policy.ErrNotLoaded, text), true
	case wire.KindNotKept:
		return fmt.Errorf("%w: %s", policy.ErrNotKept, text), true
	case wire.KindOutOfMemory:
		return &outOfMemoryError{Message: text}, true
	case wire.KindNonFinite:
		return fmt.Errorf("%s: %w", e.Message, &policy.NonFiniteError{Name: e.Name}), true
	case wire.KindCorrupt:
		return fmt.Errorf("%w: %s", checkpoint.ErrCorrupt, text), true
	case wire.KindCancelled:
		return ctx.Err(), ctx.Err() != nil
	}
	return nil, false
}

// withSize adds the size of a call, from the lengths of its sequences, to an error about memory. For training it also
// adds the estimate.
func (o Options) withSize(err error, lengths []int32, trains bool) error {
	full, ok := err.(*outOfMemoryError)
	if !ok {
		return err
	}
	for _, n := range lengths {
		full.Tokens, full.Longest = full.Tokens+int(n), max(full.Longest, int(n))
	}
	if trains && o.Estimate != nil {
		full.Estimate = o.Estimate(full.Tokens, full.Longest)
	}
	return full
}
