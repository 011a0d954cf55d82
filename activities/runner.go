package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// runner runs the stages of a group one after the other within one activity, each within the limit of its own activity.
type runner struct {
	ctx      context.Context //nolint:containedctx // the driver knows none
	deps     *Deps
	env      *Env
	own      *api.Timing        // of the activity
	timeouts map[string]float64 // time limits in seconds, by activity, where a person set others
	timings  []api.Timing
	measured bool // a stage has run
}

// group runs a group of stages within one activity, which has no stage of its own.
func (d *Deps) group(ctx context.Context, at api.Scope, shard int, in api.Sent, out *api.Spent,
	body func(r *runner) error) error {
	own := api.Timing{Shard: shard, Turn: -1}
	return d.tracked(ctx, &Env{}, at, &own, func(ctx context.Context, p *progress) error {
		r := &runner{ctx: ctx, deps: d, env: &Env{progress: p}, own: &own, timeouts: in.Timeouts}
		defer r.env.use()()
		err := body(r)
		r.env.done, out.Timings = err == nil, r.Spent()
		return err
	})
}

// Run implements step.Runner.
func (r *runner) Run(c step.Call, out api.Result) error {
	type ended struct {
		set func(out any)
		err error
	}
	limit := r.limit(c.Activity)
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	stage := r.deps.Activities[c.Activity]
	end, done := r.env.use(), make(chan ended, 1)
	go func() {
		var e ended
		e.err = contain(ctx, func() (err error) {
			e.set, err = stage.run(ctx, r.env, c.In)
			return err
		})
		end()
		done <- e
	}()
	select {
	case e := <-done:
		if e.err != nil {
			return failed(c, e.err)
		}
		e.set(out)
		r.took(c.Stage, out.Its().Timing)
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return failed(c, temporal.NewApplicationError(fmt.Sprintf("no result in %v", limit), api.FailTimeout))
		}
		return ctx.Err()
	}
}

// took keeps the measured time of a stage. That of the first one includes what the activity did before it.
func (r *runner) took(stage string, t api.Timing) {
	if stage == stages.Timings {
		return
	}
	if !r.measured {
		r.measured, t.Start, t.Queue = true, min(t.Start, r.own.Start), r.own.Queue
	}
	r.timings = append(r.timings, t)
}

// Unit implements step.Runner.
func (r *runner) Unit(u step.Unit) error { return u.Body(r) }

// Each implements step.Runner: one call after the other.
func (r *runner) Each(n int, f func(step.Runner, int) error) error {
	failures := make([]error, n)
	for i := range n {
		failures[i] = f(r, i)
	}
	return errors.Join(failures...)
}

// Aside implements step.Runner: f has ended when it returns.
func (r *runner) Aside(f func(step.Runner) error) (wait func() error) {
	err := f(r)
	return func() error { return err }
}

// Spent implements step.Runner.
func (r *runner) Spent() (out []api.Timing) {
	out, r.timings = r.timings, nil
	return out
}

// limit is how long one execution of an activity may take.
func (r *runner) limit(name string) time.Duration {
	if seconds := r.timeouts[name]; seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	return stages.ActivityOf(name).Limit
}

// failed says in an error's details which stage of an activity failed.
func failed(c step.Call, err error) error {
	options := temporal.ApplicationErrorOptions{Cause: err,
		Details: []any{api.FailedPart{Stage: c.Stage, Turn: c.Turn, Activity: c.Activity}}}
	text := err.Error()
	var said *temporal.ApplicationError
	if errors.As(err, &said) {
		options.NonRetryable, text = said.NonRetryable(), said.Message()
		return temporal.NewApplicationErrorWithOptions(text, said.Type(), options)
	}
	return temporal.NewApplicationErrorWithOptions(text, "", options)
}

// attemptOf returns the attempt of the activity that runs under ctx.
func attemptOf(ctx context.Context) int { return int(activity.GetInfo(ctx).Attempt) }
