package activities

import (
	"context"
	"log/slog"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// panicAttempts is after how many attempts a panic is final: most panics come again.
const panicAttempts = 3

// contain runs body. If it panics, or if an error of it comes from a panic, the attempt fails with the kind panic, and
// the log has the stack.
func contain(ctx context.Context, body func() error) error {
	err := rescue.Do(body)
	stack := rescue.Stack(err)
	if stack == "" || ctx.Err() != nil {
		return err
	}
	slog.ErrorContext(ctx, "a stage panicked", "error", err, "stack", stack)
	if activity.IsActivity(ctx) && attemptOf(ctx) >= panicAttempts {
		return permanent(api.FailPanic, err)
	}
	return temporal.NewApplicationError(err.Error(), api.FailPanic)
}

// stageActivity is a stage as a worker registers it.
type stageActivity struct {
	activity any // the function that Temporal calls
	// run runs the stage within an activity; set sets a pointer to its result.
	run func(ctx context.Context, e *Env, in any) (set func(out any), err error)
}

// stageOf registers a stage.
func stageOf[In, Out any](execute func(context.Context, *Env, In) (Out, error)) stageActivity {
	return stageActivity{
		activity: func(ctx context.Context, in In) (out Out, err error) {
			err = contain(ctx, func() (err error) {
				out, err = execute(ctx, &Env{}, in)
				return err
			})
			return out, err
		},
		run: func(ctx context.Context, e *Env, in any) (func(any), error) {
			result, err := execute(ctx, e, in.(In))
			return func(out any) { *out.(*Out) = result }, err
		},
	}
}
