package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// parts runs stages within one activity, each as its own activity would run it.
type parts struct {
	timeouts map[string]float64 // time limits in seconds, by activity, where a person set others
	timings  []api.Timing       // of the stages that have run, in order
}

// together runs stages within one activity, which has none of its own, and returns how many seconds it waited for its
// worker.
func (d *Deps) together(ctx context.Context, at api.Scope, body func(ctx context.Context) error) (float64, error) {
	own := api.Timing{Shard: -1, Turn: -1}
	err := d.tracked(ctx, at, &own, func(ctx context.Context, p *progress) error { return body(within(ctx, p)) })
	return own.Queue, err
}

// part is a stage that an activity runs within itself.
type part struct {
	stage, activity string
	turn            int // −1 where the stage has none
}

// inner runs the activity of a part within the limit of the part's own activity, and keeps its measured time.
func inner[In, Out any](ctx context.Context, s *parts, p part, execute func(context.Context, In) (Out, error), in In,
	its func(*Out) *api.Done) (Out, error) {
	type ended struct {
		out Out
		err error
	}
	limit := s.limit(p.activity)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan ended, 1)
	go func() {
		var e ended
		e.err = contain(ctx, func() (err error) {
			e.out, err = execute(ctx, in)
			return err
		})
		done <- e
	}()
	select {
	case e := <-done:
		if e.err == nil {
			s.timings = append(s.timings, its(&e.out).Timing)
		}
		return e.out, p.at(e.err)
	case <-ctx.Done():
		var none Out
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return none, p.at(temporal.NewApplicationError(fmt.Sprintf("no result in %v", limit), api.FailTimeout))
		}
		return none, ctx.Err()
	}
}

// limit is how long one execution of an activity may take.
func (s *parts) limit(name string) time.Duration {
	if seconds := s.timeouts[name]; seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	return limits[name]
}

// limits are the declared time limits of activities.
var limits = func() map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, a := range stages.Activities() {
		out[a.Name] = a.Limit
	}
	return out
}()

// at says in an error's details which part failed.
func (p part) at(err error) error {
	if err == nil {
		return nil
	}
	options := temporal.ApplicationErrorOptions{Cause: err,
		Details: []any{api.FailedPart{Stage: p.stage, Turn: p.turn, Activity: p.activity}}}
	text := err.Error()
	var said *temporal.ApplicationError
	if errors.As(err, &said) {
		options.NonRetryable, text = said.NonRetryable(), said.Message()
		return temporal.NewApplicationErrorWithOptions(text, said.Type(), options)
	}
	return temporal.NewApplicationErrorWithOptions(text, "", options)
}

// withinKey is the context key of the progress of the activity that a stage runs within.
type withinKey struct{}

// within marks the stages that run under ctx as parts of one activity. They count on its progress, and send no
// heartbeats of their own.
func within(ctx context.Context, p *progress) context.Context {
	return context.WithValue(ctx, withinKey{}, p)
}

// enclosing returns the progress of the activity that a stage runs within; nil where the stage is an activity.
func enclosing(ctx context.Context) *progress {
	p, _ := ctx.Value(withinKey{}).(*progress)
	return p
}

// attemptOf returns the attempt of the activity that runs under ctx.
func attemptOf(ctx context.Context) int { return int(activity.GetInfo(ctx).Attempt) }
