package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// refuse sets the search attribute FailureKind for a refused input and returns the error unchanged.
func refuse(ctx workflow.Context, err error) error {
	setFailureKind(ctx, api.FailBadInput)
	return err
}

// setFailureKind shows in a search attribute what kind of failure a workflow waits or ends with.
func setFailureKind(ctx workflow.Context, kind string) {
	// Upserting fails only for keys that cannot be encoded; this is a constant.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(kind))
}

// unsetFailureKind takes back what setFailureKind shows, because the workflow continues.
func unsetFailureKind(ctx workflow.Context) {
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueUnset())
}

// failure returns the kind of a failed stage's innermost cause and the text that a person needs.
func failure(err error) (kind, text string) {
	kind = "error"
	name := activityOf(err)
	if part, ok := failedPart(err); ok {
		name = part.Activity
	}
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
		if kind == api.FailBadInput {
			return kind, app.Message()
		}
		return kind, text + app.Message()
	}
	return kind, text + err.Error()
}

// activityOf returns the name of the failed activity, or "" if no activity failed.
func activityOf(err error) string {
	var activity *temporal.ActivityError
	if errors.As(err, &activity) {
		return activity.ActivityType().GetName()
	}
	return ""
}

// stageError says in which part of a stage an error occurred.
type stageError struct {
	stage       string
	shard, turn int // −1 where the stage has none
	err         error
}

func (e stageError) Error() string { return e.err.Error() }
func (e stageError) Unwrap() error { return e.err }

// failures lists what failed, with one entry for each failed shard. stage is the name to use where the error itself
// names no stage.
func failures(err error, stage string) []StageFailure {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		var all []StageFailure
		for _, e := range several.Unwrap() {
			all = append(all, failures(e, stage)...)
		}
		return all
	}
	var own ownStepError
	if errors.As(err, &own) {
		return own.all
	}
	if said, ok := detailed(err); ok {
		return said
	}
	f := StageFailure{Stage: stage, Shard: -1, Turn: -1, Activity: activityOf(err)}
	var at stageError
	if errors.As(err, &at) {
		f.Stage, f.Shard, f.Turn = at.stage, at.shard, at.turn
	}
	if in, ok := failedPart(err); ok {
		f.Stage, f.Turn, f.Activity = in.Stage, in.Turn, in.Activity
	}
	f.Kind, f.Text = failure(err)
	return []StageFailure{f}
}

// failedPart reads which stage failed within an activity that runs several.
func failedPart(err error) (api.FailedPart, bool) {
	var part api.FailedPart
	var app *temporal.ApplicationError
	if !stages.ActivityOf(activityOf(err)).Joint || !errors.As(err, &app) || !app.HasDetails() {
		return part, false
	}
	return part, app.Details(&part) == nil && part.Stage != ""
}

// failureBytes bounds the text of one failure.
const failureBytes = 2000

// stepFailed returns the failure of a step's workflow: people read its text, and the run reads its details.
func stepFailed(all []StageFailure) error {
	all = slices.Clone(all)
	for i, f := range all { // truncate, so that the failures of all shards fit into one payload
		if len(f.Text) > failureBytes {
			all[i].Text = strings.ToValidUTF8(f.Text[:failureBytes], "") + "…"
		}
	}
	text := all[0].String()
	if n := len(all) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return temporal.NewNonRetryableApplicationError(text, all[0].Kind, nil, all)
}

// detailed is the inverse of stepFailed: it reads the details from the error of a child workflow.
func detailed(err error) ([]StageFailure, bool) {
	var child *temporal.ChildWorkflowExecutionError
	var app *temporal.ApplicationError
	if !errors.As(err, &child) || !errors.As(child, &app) || !app.HasDetails() {
		return nil, false
	}
	var all []StageFailure
	if app.Details(&all) != nil {
		return nil, false
	}
	return all, len(all) > 0
}

// saysItself reports whether the error of a child workflow carries the details of what failed.
func saysItself(err error) bool {
	_, ok := detailed(err)
	return ok
}
