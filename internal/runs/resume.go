package runs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// Resumable finds what a run continues from: its open workflow, the recipe that it has committed, or its request.
// prepared is the workflow that goes on with a committed recipe, "" if none is committed.
func (s *Session) Resumable(
	ctx context.Context, run string, last Execution,
) (request schema.Request, prepared string, err error) {
	m, _, found, err := commit.New(s.Store).Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err != nil {
		return request, "", err
	}
	if found {
		prepared = workflows.TrainRunName
		if m.Note[schema.NoteEvaluates] != "" {
			prepared = workflows.EvaluateRunName
		}
	}
	if last.Open {
		return request, prepared, nil
	}
	record := analysis.New(s.Store)
	if prepared == "" {
		request, found, err := record.Request(ctx, run)
		if err != nil {
			return request, "", err
		}
		if found {
			return request, "", nil
		}
	}
	known, err := record.Run(ctx, run)
	switch {
	case err != nil:
		return request, "", Missing(err)
	case prepared == "":
		return request, "", badinput.Errorf("run %s has committed no recipe, so there is nothing to resume: "+
			"start it with `ropewalk run RECIPE --run-id %s`", run, run)
	case known.Steps == 0:
		return request, "", badinput.Errorf("run %s is an import, which has no steps to resume: "+
			"`ropewalk import FORMAT FILE --run-id %s` continues with the same file", run, run)
	}
	return request, prepared, nil
}

// askWithin is how long an ended workflow may take to answer.
const askWithin = 20 * time.Second

// unrecorded asks the workflow of a training that was ended for the measured times that it has not recorded. A worker
// answers from the workflow's history. Without an answer, the record notes that the times are lost.
func unrecorded(ctx context.Context, c client.Client, run string) (out []api.RecordTimingsInput) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	value, err := c.QueryWorkflow(ctx, run, "", workflows.QueryUnrecorded)
	if err == nil {
		err = value.Get(&out)
	}
	if ignoreClosed(err) != nil {
		slog.WarnContext(ctx, "ask the ended workflow for measured times", "run", run, "error", err)
	}
	return out
}

// StartAgain starts the workflow kind, TrainRun or EvaluateRun, under the recipe that the run has committed, or joins
// the workflow if another command was faster.
func StartAgain(ctx context.Context, c client.Client, kind, run string, priority temporal.Priority) error {
	var in any = workflows.EvaluateInput{Run: run, Resume: true}
	if kind == workflows.TrainRunName {
		in = workflows.TrainRunInput{Run: run, Resume: true, Unrecorded: unrecorded(ctx, c, run)}
	}
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: run, TaskQueue: workflows.QueueCPU, StaticSummary: "resume " + run, Priority: priority,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, kind, in)
	if err != nil {
		return fmt.Errorf("start run %s: %w", run, err)
	}
	return nil
}
