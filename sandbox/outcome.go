package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// CallErrors says which calls of a batch broke. It has one entry per call, which is nil if the call's result is valid.
type CallErrors []error

// Error returns the first breakage and how many there are.
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

// Outcome is the result of one call: a verdict, or the breakage that prevented one.
type Outcome struct {
	Result
	Broken error // nil if Result is a verdict
}

// probe is a call that gets a verdict from any working sandbox.
var probe = Call{Code: "1"}

// RunEach runs calls and returns the outcome of each. If a call breaks while others get their verdicts, it is run once
// more by itself.
//
// An error means that the sandbox is broken and no call is to blame: ctx has ended; the whole batch failed twice;
// several different calls broke and none got a verdict; or calls broke and the sandbox also fails on a trivial program.
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

// attempt runs the calls once. An error means that the whole batch failed; a panic counts as an error.
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

// blame returns an error if calls broke because of the sandbox.
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
