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
	name := activityOf(err)
	if name != "" {
		text = name + ": "
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

// activityOf names the activity that failed, if one did.
func activityOf(err error) string {
	var activity *temporal.ActivityError
	if errors.As(err, &activity) {
		return activity.ActivityType().GetName()
	}
	return ""
}

// stageError says in which part of a stage an error came up.
type stageError struct {
	stage       string
	shard, turn int // −1 where the stage has none
	err         error
}

func (e stageError) Error() string { return e.err.Error() }
func (e stageError) Unwrap() error { return e.err }

// failures lists what failed, one entry for each shard that did. The stage is the one to name
// where the error itself does not tell.
func failures(err error, stage string) []StageFailure {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		var all []StageFailure
		for _, e := range several.Unwrap() {
			all = append(all, failures(e, stage)...)
		}
		return all
	}
	f := StageFailure{Stage: stage, Shard: -1, Turn: -1, Activity: activityOf(err)}
	var at stageError
	if errors.As(err, &at) {
		f.Stage, f.Shard, f.Turn = at.stage, at.shard, at.turn
	}
	f.Kind, f.Text = failure(err)
	return []StageFailure{f}
}

// stepFailed is the failure of a step's workflow: its text is for people, its details for the run.
func stepFailed(all []StageFailure) error {
	text := all[0].String()
	if n := len(all) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return temporal.NewNonRetryableApplicationError(text, all[0].Kind, nil, all)
}

// stepFailures is the inverse of stepFailed, for the error of a child workflow.
func stepFailures(err error, stage string) []StageFailure {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.HasDetails() {
		var all []StageFailure
		if app.Details(&all) == nil && len(all) > 0 {
			return all
		}
	}
	return failures(err, stage)
}
