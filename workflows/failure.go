package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// refuse lets a refused input be found by its kind; the failure is the input's error as it is.
func refuse(ctx workflow.Context, err error) error {
	// Upserting fails only for keys that cannot be encoded; this is a constant.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(wire.FailBadInput))
	return err
}

// failure finds the innermost cause of a failed stage: its kind and the text that a person needs.
func failure(err error) (kind, text string) {
	kind = "error"
	var activity *temporal.ActivityError
	if errors.As(err, &activity) {
		text = activity.ActivityType().GetName() + ": "
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return "timeout", text + fmt.Sprintf("no result in time (%s)", timeout.TimeoutType())
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		if app.Type() != "" {
			kind = app.Type()
		}
		if kind == wire.FailBadInput {
			return kind, app.Message()
		}
		return kind, text + app.Message()
	}
	return kind, text + err.Error()
}
