package sandbox

import (
	"context"
	"errors"
	"runtime"
)

// Once runs identical calls of a batch only once: it passes the distinct ones on, in the order of their first
// occurrence, and keeps nothing between batches. A verdict depends only on its call (the contract of sandbox/zygote),
// so trajectories that write the same program at the same turn, as samples of one prompt often do, share one execution.
// Each still gets its own row in the record. Closing it closes the next executor.
type Once struct{ next Executor }

// NewOnce returns an executor that passes calls on to next.
func NewOnce(next Executor) *Once { return &Once{next: next} }

// Run implements Executor. A call that shared another call's execution took no time of its own, so its Timing
// says only that. If an execution broke, it broke for all calls that share it.
func (e *Once) Run(ctx context.Context, calls []Call) ([]Result, error) {
	place := make(map[string]int, len(calls)) // call's key → index among the distinct calls
	at := make([]int, len(calls))
	var distinct []Call
	for i, c := range calls {
		key := c.Key()
		if _, seen := place[key]; !seen {
			place[key] = len(distinct)
			distinct = append(distinct, c)
		}
		at[i] = place[key]
	}
	verdicts, err := e.next.Run(ctx, distinct)
	var broken CallErrors
	if err != nil && (!errors.As(err, &broken) || len(broken) != len(distinct)) {
		return nil, err
	}
	results := make([]Result, len(calls))
	taken := make([]bool, len(distinct))
	for i, n := range at {
		results[i] = verdicts[n]
		if taken[n] {
			results[i].Timing = Timing{Shared: true}
		}
		taken[n] = true
	}
	if broken == nil {
		return results, nil
	}
	each := make(CallErrors, len(calls))
	for i, n := range at {
		each[i] = broken[n]
	}
	return results, each
}

// Workers returns how many calls the next executor runs at once.
func (e *Once) Workers() int {
	if sized, ok := e.next.(interface{ Workers() int }); ok {
		return max(sized.Workers(), 1)
	}
	return runtime.NumCPU()
}

// Close closes the next executor.
func (e *Once) Close() error { return e.next.Close() }
