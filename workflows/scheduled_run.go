package workflows

import (
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// The parts of a scheduled run's name that stand for the time at which it was due, in UTC.
const (
	NameTime = "{time}" // 20260102-030405
	NameDate = "{date}" // 20260102
)

// ScheduledInput is what a schedule starts at each of its times: a training or an evaluation.
type ScheduledInput struct {
	// Name is the run's name, in which NameTime or NameDate stands for the time.
	Name     string         `json:"name"`
	Train    *TrainRunInput `json:"train,omitempty"`
	Evaluate *EvaluateInput `json:"evaluate,omitempty"`
	// Recipe and Digest are the name and the digest of the resolved recipe, for the audit log.
	Recipe string `json:"recipe,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// attrSchedule is the name of the schedule whose action a workflow is. Temporal sets it.
var attrSchedule = temporal.NewSearchAttributeKeyKeyword("TemporalScheduledById")

// attrScheduled is the time at which a schedule's action was due. Temporal sets it.
var attrScheduled = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// RunAt is the name of the run that is due at a time.
func (in ScheduledInput) RunAt(due time.Time) string {
	due = due.UTC()
	return strings.NewReplacer(NameTime, due.Format("20060102-150405"), NameDate, due.Format("20060102")).
		Replace(in.Name)
}

// ScheduledRun is the action of a schedule: it starts the run that is due and ends with it, so that the schedule knows
// whether the previous one still goes on. When it is cancelled, so is the run.
// A second run of the same name adopts what the first one has committed.
func ScheduledRun(ctx workflow.Context, in ScheduledInput) error {
	due, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(attrScheduled)
	if !ok {
		due = workflow.GetInfo(ctx).WorkflowStartTime
	}
	run := in.RunAt(due)
	if err := checkRun(run); err != nil {
		return err
	}
	workflow.SetCurrentDetails(ctx, "run `"+run+"`")
	if err := in.note(ctx, run); err != nil {
		return err
	}
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: run, StaticSummary: "scheduled: " + run,
	})
	switch {
	case in.Train != nil && in.Evaluate == nil:
		train := *in.Train
		train.Run = run
		return workflow.ExecuteChildWorkflow(ctx, TrainRun, train).Get(ctx, nil)
	case in.Evaluate != nil && in.Train == nil:
		evaluate := *in.Evaluate
		evaluate.Run = run
		return workflow.ExecuteChildWorkflow(ctx, EvaluateRun, evaluate).Get(ctx, nil)
	}
	return badInput("train, evaluate: give one of them")
}

// note notes in the record which schedule starts the run, before it is started: what cannot be noted is not done.
func (in ScheduledInput) note(ctx workflow.Context, run string) error {
	actor := "a schedule"
	if name, ok := workflow.GetTypedSearchAttributes(ctx).GetKeyword(attrSchedule); ok {
		actor = "schedule " + name
	}
	what := map[string]string{"workflow": TrainRunName}
	if in.Evaluate != nil {
		what["workflow"] = EvaluateRunName
	}
	if in.Digest != "" {
		what["recipe"], what["digest"] = in.Recipe, in.Digest
	}
	_, err := call[api.Done](ctx, nil, api.NoteDeed, actor+" starts "+run, api.DeedInput{Run: run, Action: "start",
		With: what, Actor: actor, At: workflow.Now(ctx).UnixMicro()})
	return err
}
