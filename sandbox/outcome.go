package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// CallErrors says which calls of a batch broke: one entry a call, nil where its result stands.
type CallErrors []error

// Error tells the first breakage and how many there are.
func (e CallErrors) Error() string {
	broken := e.Unwrap()
	if len(broken) == 0 {
		return "no call broke"
	}
	return fmt.Sprintf("%d of %d calls broke: %v", len(broken), len(e), broken[0])
}

// Unwrap returns the breakages.
func (e CallErrors) Unwrap() []error {
	return slices.DeleteFunc(slices.Clone([]error(e)), func(err error) bool { return err == nil })
}

// Outcome is what became of one call: a verdict, or the breakage that left none.
type Outcome struct {
	Result
	Broken error // nil where Result is a verdict
}

// probe is a call that any sandbox that works has a verdict on.
var probe = Call{Code: "1"}

// RunEach runs calls and says of each what became of it. A call that breaks, while others get their
// verdicts, is run once more by itself.
//
// An error means that the sandbox is broken and no call is to blame: ctx has ended, the whole batch
// failed twice, several different calls broke and none got a verdict, or, where calls broke, the
// sandbox has no verdict on a trivial program either.
func RunEach(ctx context.Context, e Executor, calls []Call) ([]Outcome, error) {
	out, err := attempt(ctx, e, calls)
	if err != nil && ctx.Err() == nil {
		out, err = attempt(ctx, e, calls)
	}
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Broken == nil {
			continue
		}
		again, err := attempt(ctx, e, calls[i:i+1])
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			out[i].Broken = err
		default:
			out[i] = again[0]
		}
	}
	return out, blame(ctx, e, calls, out)
}

// attempt runs calls once. An error is of the whole batch; panics are errors.
func attempt(ctx context.Context, e Executor, calls []Call) ([]Outcome, error) {
	var results []Result
	err := rescue.Do(func() (err error) {
		results, err = e.Run(ctx, calls)
		return err
	})
	var single CallErrors
	if err != nil && (!errors.As(err, &single) || len(single) != len(calls)) {
		return nil, err
	}
	if len(results) != len(calls) {
		return nil, fmt.Errorf("%w: %d results of %d calls", ErrInfrastructure, len(results), len(calls))
	}
	out := make([]Outcome, len(calls))
	for i := range calls {
		if single != nil && single[i] != nil {
			out[i].Broken = single[i]
			continue
		}
		out[i].Result = results[i]
	}
	return out, nil
}

// blame returns an error if calls broke and the sandbox is to blame for it.
func blame(ctx context.Context, e Executor, calls []Call, out []Outcome) error {
	first := slices.IndexFunc(out, func(o Outcome) bool { return o.Broken != nil })
	if first < 0 {
		return nil
	}
	verdicts := slices.ContainsFunc(out, func(o Outcome) bool { return o.Broken == nil })
	one := calls[0].Key()
	different := slices.ContainsFunc(calls, func(c Call) bool { return c.Key() != one })
	if verdicts || !different {
		works, err := attempt(ctx, e, []Call{probe})
		if err == nil && works[0].Broken == nil {
			return nil
		}
		return fmt.Errorf("the sandbox broke on %d calls, and on a trivial one: %w", len(out), out[first].Broken)
	}
	return fmt.Errorf("none of %d calls got a verdict: %w", len(calls), out[first].Broken)
}
