package symbolic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Graded is the result for a pair: a grade, or the breakage that prevented one.
type Graded struct {
	Grade
	Broken error         // nil if Grade is valid
	CPU    time.Duration // measured, so not part of the outcome
}

// Run grades pairs, in their order. If a call gives no grade, or a limit ended it, it is run once more by itself.
//
// An error means that the sandbox is broken and no pair is to blame: ErrNoSympy; the errors of sandbox.RunEach; several
// pairs of which none got a grade; or a limit that also ends the comparison of x+1 and 1+x.
func Run(ctx context.Context, e sandbox.Executor, pairs []Pair) ([]Graded, error) {
	calls := make([]sandbox.Call, len(pairs))
	for i, p := range pairs {
		var err error
		if calls[i], err = callOf(p); err != nil {
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
	if slices.ContainsFunc(outcomes, limited) && !slices.Equal(pairs, []Pair{probe}) {
		if err := Available(ctx, e); err != nil {
			return nil, fmt.Errorf("compare answers: a limit ended a comparison: try another: %w", err)
		}
	}
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

// refused reports whether the sandbox refused a call as malformed. Then it has no such package set, since everything
// else in a call is bounded and well-formed.
func refused(outcomes []sandbox.Outcome, err error) bool {
	return errors.Is(err, sandbox.ErrBadCall) ||
		slices.ContainsFunc(outcomes, func(o sandbox.Outcome) bool { return errors.Is(o.Broken, sandbox.ErrBadCall) })
}

// graded reads an outcome, or that of a second run if the first has no grade.
func graded(ctx context.Context, e sandbox.Executor, call sandbox.Call, o sandbox.Outcome) (Graded, error) {
	out := Graded{CPU: o.Timing.CPU}
	if out.Grade, out.Broken = read(o); out.Broken == nil && !limited(o) {
		return out, nil
	}
	if o.Broken != nil { // RunEach has tried the call twice
		return out, nil
	}
	again, err := sandbox.RunEach(ctx, e, []sandbox.Call{call})
	if err != nil {
		return Graded{}, errors.Join(fmt.Errorf("compare an answer once more: %w", err), out.Broken)
	}
	if limited(o) && again[0].Broken != nil { // the limit was reached, whatever broke after that
		return out, nil
	}
	out.CPU += again[0].Timing.CPU
	out.Grade, out.Broken = read(again[0])
	return out, nil
}
