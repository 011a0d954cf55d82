package activities

import (
	"context"
	"log/slog"
	"reflect"

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

// contained returns an activity's function that contains its panics.
func contained(execute any) any {
	f := reflect.ValueOf(execute)
	return reflect.MakeFunc(f.Type(), func(in []reflect.Value) (out []reflect.Value) {
		ctx, _ := in[0].Interface().(context.Context)
		if err := contain(ctx, func() error { out = f.Call(in); return nil }); err != nil {
			out = []reflect.Value{reflect.Zero(f.Type().Out(0)), reflect.ValueOf(&err).Elem()}
		}
		return out
	}).Interface()
}
