package stage

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

// Runner runs the stages of a group one after the other within one activity, each within the limit of its own activity.
type Runner struct {
	Context  context.Context //nolint:containedctx // the driver knows none
	Worker   *Worker
	Env      *Env
	Own      *api.Timing        // of the activity
	timeouts map[string]float64 // time limits in seconds, by activity, where a person set others
	timings  []api.Timing
	measured bool // a stage has run
}

// Group runs a group of stages within one activity, which has no stage of its own.
func (d *Worker) Group(ctx context.Context, at api.Scope, shard int, in api.Sent, out *api.Spent,
	body func(r *Runner) error) error {
	own := api.Timing{Shard: shard, Turn: -1}
	return d.Track(ctx, &Env{}, at, &own, func(ctx context.Context, p *Progress) error {
		r := &Runner{Context: ctx, Worker: d, Env: &Env{Progress: p}, Own: &own, timeouts: in.Timeouts}
		defer r.Env.Use()()
		err := body(r)
		r.Env.Done, out.Timings = err == nil, r.Spent()
		return err
	})
}

// Run implements step.Runner.
func (r *Runner) Run(c step.Call, out api.Result) error {
	type ended struct {
		set func(out any)
		err error
	}
	limit := r.limit(c.Activity)
	ctx, cancel := context.WithTimeout(r.Context, limit)
	defer cancel()
	stage := r.Worker.Activities[c.Activity]
	end, done := r.Env.Use(), make(chan ended, 1)
	go func() {
		var e ended
		e.err = contain(ctx, func() (err error) {
			e.set, err = stage.Run(ctx, r.Env, c.In)
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
		r.took(c.Stage, out.Common().Timing)
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return failed(c, temporal.NewApplicationError(fmt.Sprintf("no result in %v", limit), api.FailTimeout))
		}
		return ctx.Err()
	}
}

// took keeps the measured time of a stage. That of the first one includes what the activity did before it.
func (r *Runner) took(stage string, t api.Timing) {
	if stage == stages.Timings {
		return
	}
	if !r.measured {
		r.measured, t.Start, t.Queue = true, min(t.Start, r.Own.Start), r.Own.Queue
	}
	r.timings = append(r.timings, t)
}

// Unit implements step.Runner.
func (r *Runner) Unit(u step.Unit) error { return u.Body(r) }

// Each implements step.Runner: one call after the other.
func (r *Runner) Each(n int, f func(step.Runner, int) error) error {
	failures := make([]error, n)
	for i := range n {
		failures[i] = f(r, i)
	}
	return errors.Join(failures...)
}

// Aside implements step.Runner: f has ended when it returns.
func (r *Runner) Aside(f func(step.Runner) error) (wait func() error) {
	err := f(r)
	return func() error { return err }
}

// Spent implements step.Runner.
func (r *Runner) Spent() (out []api.Timing) {
	out, r.timings = r.timings, nil
	return out
}

// limit is how long one execution of an activity may take.
func (r *Runner) limit(name string) time.Duration {
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
