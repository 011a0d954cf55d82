package stage

import (
	"context"
	"log/slog"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// PanicAttempts is after how many attempts a panic is final: most panics come again.
const PanicAttempts = 3

// contain runs body. If it panics, or if an error of it comes from a panic, the attempt fails with the kind panic, and
// the log has the stack.
func contain(ctx context.Context, body func() error) error {
	err := rescue.Do(body)
	stack := rescue.Stack(err)
	if stack == "" || ctx.Err() != nil {
		return err
	}
	slog.ErrorContext(ctx, "a stage panicked", "error", err, "stack", stack)
	if activity.IsActivity(ctx) && attemptOf(ctx) >= PanicAttempts {
		return failure.Permanent(api.FailPanic, err)
	}
	return temporal.NewApplicationError(err.Error(), api.FailPanic)
}

// Activity is a stage as a worker registers it.
type Activity struct {
	Activity any // the function that Temporal calls
	// Run runs the stage within an activity; set sets a pointer to its result.
	Run func(ctx context.Context, e *Env, in any) (set func(out any), err error)
}

// Of registers a stage.
func Of[In, Out any](execute func(context.Context, *Env, In) (Out, error)) Activity {
	return Activity{
		Activity: func(ctx context.Context, in In) (out Out, err error) {
			err = contain(ctx, func() (err error) {
				out, err = execute(ctx, &Env{}, in)
				return err
			})
			return out, err
		},
		Run: func(ctx context.Context, e *Env, in any) (func(any), error) {
			result, err := execute(ctx, e, in.(In))
			return func(out any) { *out.(*Out) = result }, err
		},
	}
}
