package torch

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// OutOfMemoryError is policy.ErrOutOfMemory with what was asked and what there was.
type OutOfMemoryError struct {
	Message string // the engine's
	Tokens  int    // of the call
	Longest int    // of its sequences, in tokens
	Memory  Memory // as the last beat had it
}

func (e *OutOfMemoryError) Error() string {
	text := fmt.Sprintf("%v: %s", policy.ErrOutOfMemory, e.Message)
	if e.Tokens > 0 {
		text += fmt.Sprintf("; the call was of %d tokens, the longest sequence of %d", e.Tokens, e.Longest)
	}
	if m := e.Memory; m.Peak > 0 {
		text += fmt.Sprintf("; %d MiB were allocated, %d MiB at the peak", m.Allocated>>20, m.Peak>>20)
	}
	return text
}

// Is makes it policy.ErrOutOfMemory.
func (e *OutOfMemoryError) Is(target error) bool { return target == policy.ErrOutOfMemory }

// contract turns an engine's error into the contract's; false of one that leaves the engine in doubt.
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
		return &OutOfMemoryError{Message: text}, true
	case wire.KindNonFinite:
		return fmt.Errorf("%s: %w", e.Message, &policy.NonFiniteError{Name: e.Name}), true
	case wire.KindCorrupt:
		return fmt.Errorf("%w: %s", checkpoint.ErrCorrupt, text), true
	case wire.KindCancelled:
		return ctx.Err(), ctx.Err() != nil
	}
	return nil, false
}
