// Package once runs identical calls of a batch one time. A verdict depends on its call alone
// (sandbox/zygote's contract), so trajectories that write the same program at the same turn, as the
// samples of one prompt often do, share one execution; each still gets its own row of the record.
package once

import (
	"context"
	"errors"
	"runtime"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Executor passes the distinct calls of each batch on, in the order of their first occurrence.
// It holds nothing between batches. Closing it closes what is beneath.
type Executor struct{ next sandbox.Executor }

// New returns an executor over next.
func New(next sandbox.Executor) *Executor { return &Executor{next: next} }

// Run implements sandbox.Executor. A call that shared another's execution took no time of its own:
// its Timing is zero. A call that broke broke for all that share it.
func (e *Executor) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	place := make(map[string]int, len(calls)) // of a call's key among the distinct ones
	at := make([]int, len(calls))
	var distinct []sandbox.Call
	for i, c := range calls {
		key := c.Key()
		if _, seen := place[key]; !seen {
			place[key] = len(distinct)
			distinct = append(distinct, c)
		}
		at[i] = place[key]
	}
	verdicts, err := e.next.Run(ctx, distinct)
	var broken sandbox.CallErrors
	if err != nil && (!errors.As(err, &broken) || len(broken) != len(distinct)) {
		return nil, err
	}
	results := make([]sandbox.Result, len(calls))
	taken := make([]bool, len(distinct))
	for i, n := range at {
		results[i] = verdicts[n]
		if taken[n] {
			results[i].Timing = sandbox.Timing{}
		}
		taken[n] = true
	}
	if broken == nil {
		return results, nil
	}
	each := make(sandbox.CallErrors, len(calls))
	for i, n := range at {
		each[i] = broken[n]
	}
	return results, each
}

// Workers is how many calls the executor beneath runs at once.
func (e *Executor) Workers() int {
	if sized, ok := e.next.(interface{ Workers() int }); ok {
		return max(sized.Workers(), 1)
	}
	return runtime.NumCPU()
}

// Close closes the executor beneath.
func (e *Executor) Close() error { return e.next.Close() }
