// Package once runs identical calls of a batch only once. A verdict depends only on its call (the contract of
// sandbox/zygote), so trajectories that write the same program at the same turn, as samples of one prompt often do,
// share one execution. Each still gets its own row in the record.
//
//	calls ─▶ distinct calls ─▶ next executor ─▶ a result for every call
package once

import (
	"context"
	"errors"
	"runtime"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Executor passes the distinct calls of each batch on, in the order of their first occurrence. It keeps nothing between
// batches. Closing it closes the next executor.
type Executor struct{ next sandbox.Executor }

// New returns an executor that passes calls on to next.
func New(next sandbox.Executor) *Executor { return &Executor{next: next} }

// Run implements sandbox.Executor. A call that shared another call's execution took no time of its own, so its Timing
// says only that. If an execution broke, it broke for all calls that share it.
func (e *Executor) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	place := make(map[string]int, len(calls)) // call's key → index among the distinct calls
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
			results[i].Timing = sandbox.Timing{Shared: true}
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

// Workers returns how many calls the next executor runs at once.
func (e *Executor) Workers() int {
	if sized, ok := e.next.(interface{ Workers() int }); ok {
		return max(sized.Workers(), 1)
	}
	return runtime.NumCPU()
}

// Close closes the next executor.
func (e *Executor) Close() error { return e.next.Close() }
