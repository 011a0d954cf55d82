package runs

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// Resumable finds what a run continues from: its open workflow, the recipe that it has committed (prepared), or its
// request.
func (s *Session) Resumable(
	ctx context.Context, run string, last Execution,
) (request schema.Request, prepared bool, err error) {
	_, _, prepared, err = commit.New(s.Store).Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err != nil || last.Open {
		return request, prepared, err
	}
	record := analysis.New(s.Store)
	if !prepared {
		request, found, err := record.Request(ctx, run)
		if err != nil {
			return request, false, err
		}
		if found {
			return request, false, nil
		}
	}
	known, err := record.Run(ctx, run)
	switch {
	case err != nil:
		return request, false, Missing(err)
	case !prepared:
		return request, false, badinput.Errorf("run %s has committed no recipe, so there is nothing to resume: "+
			"start it with `ropewalk run RECIPE --run-id %s`", run, run)
	case known.Steps == 0:
		return request, false, badinput.Errorf("run %s is an import, which has no steps to resume: "+
			"`ropewalk import FORMAT FILE --run-id %s` continues with the same file", run, run)
	}
	return request, true, nil
}

// StartAgain starts TrainRun under the recipe that the run has committed, or joins the workflow if another command was
// faster.
func StartAgain(ctx context.Context, c client.Client, run string) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: run, TaskQueue: workflows.QueueCPU, StaticSummary: "resume " + run,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, workflows.TrainRunName, workflows.TrainRunInput{Run: run, Resume: true})
	if err != nil {
		return fmt.Errorf("start run %s: %w", run, err)
	}
	return nil
}
