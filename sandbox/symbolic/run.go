package symbolic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Graded is what became of a pair: a grade, or the breakage that left none.
type Graded struct {
	Grade
	Broken error         // nil where Grade stands
	CPU    time.Duration // measured; no part of the outcome
}

// Run grades pairs, in their order. A call that gives no grade is run once more by itself.
//
// An error means that the sandbox is broken and no pair is to blame: ErrNoSympy, those of sandbox.RunEach, and
// several pairs of which none got a grade.
func Run(ctx context.Context, e sandbox.Executor, pairs []Pair) ([]Graded, error) {
	calls := make([]sandbox.Call, len(pairs))
	for i, p := range pairs {
		var err error
		if calls[i], err = Call(p); err != nil {
			return nil, err
		}
	}
	outcomes, err := sandbox.RunEach(ctx, e, calls)
	if refused(outcomes, err) {
		return nil, ErrNoSympy
	}
	if err != nil {
		return nil, fmt.Errorf("compare answers: %w", err)
	}
	out := make([]Graded, len(pairs))
	var broken []error
	for i, o := range outcomes {
		if out[i], err = graded(ctx, e, calls[i], o); err != nil {
			return nil, err
		}
		if out[i].Broken != nil {
			broken = append(broken, out[i].Broken)
		}
	}
	if len(pairs) > 1 && len(broken) == len(pairs) {
		return nil, fmt.Errorf("compare %d answers: none got a verdict: %w", len(pairs), broken[0])
	}
	return out, nil
}

// refused reports whether a call was malformed to the sandbox, which has no such package set: all else of a
// call is bounded and well-formed.
func refused(outcomes []sandbox.Outcome, err error) bool {
	return errors.Is(err, sandbox.ErrBadCall) ||
		slices.ContainsFunc(outcomes, func(o sandbox.Outcome) bool { return errors.Is(o.Broken, sandbox.ErrBadCall) })
}

// graded reads an outcome, or that of a second run where the first has no grade.
func graded(ctx context.Context, e sandbox.Executor, call sandbox.Call, o sandbox.Outcome) (Graded, error) {
	out := Graded{CPU: o.Timing.CPU}
	if out.Grade, out.Broken = Read(o); out.Broken == nil {
		return out, nil
	}
	if o.Broken != nil { // which RunEach has tried twice
		return out, nil
	}
	again, err := sandbox.RunEach(ctx, e, []sandbox.Call{call})
	if err != nil {
		return Graded{}, errors.Join(fmt.Errorf("compare an answer once more: %w", err), out.Broken)
	}
	out.CPU += again[0].Timing.CPU
	out.Grade, out.Broken = Read(again[0])
	return out, nil
}
