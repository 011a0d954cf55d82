package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/workflows"
)

// Execution is the latest workflow of a run's name.
type Execution struct {
	Workflow string // its type
	Open     bool
	Waits    bool // it is open, parked or paused, and waits for the user's decision

	run       string
	id        string // of the execution
	exists    bool
	completed bool
	state     status.Workflow
}

// LastOf looks up the latest workflow under a run's name.
func LastOf(ctx context.Context, temporal starter, run string) (Execution, error) {
	d, err := temporal.DescribeWorkflowExecution(ctx, run, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return Execution{run: run}, nil
	}
	if err != nil {
		return Execution{}, fmt.Errorf("look up run %s: %w", run, err)
	}
	info := d.GetWorkflowExecutionInfo()
	e := Execution{run: run, id: info.GetExecution().GetRunId(), Workflow: info.GetType().GetName(), exists: true}
	e.state = workflowOf(info)
	e.Open, e.completed = e.state.Ended == status.StillOpen, e.state.Ended == status.EndedCompleted
	e.Waits = e.Open && (e.state.Kind != "" || e.state.Paused)
	return e, nil
}

// keyword reads a search attribute, "" if it is not set.
func keyword(p *commonpb.Payload) string {
	var text *string
	if p == nil || converter.GetDefaultDataConverter().FromPayload(p, &text) != nil || text == nil {
		return ""
	}
	return *text
}

// fitsOpen refuses to join an open workflow of another kind, recipe or file.
func (a Start) fitsOpen(ctx context.Context, temporal starter, open Execution) error {
	run := a.Request.Run
	if open.Workflow != a.Request.Workflow {
		return badinput.Errorf("--run-id: run %s is open as %s, and this command starts %s; choose another run id",
			run, open.Workflow, a.Request.Workflow)
	}
	recipe, file, err := openInput(ctx, temporal, open)
	if err != nil {
		return fmt.Errorf("read what the open run %s was started with: %w; choose another --run-id, or ropewalk "+
			"follow %s",
			run, err, run)
	}
	if recipe != nil && recipe.Digest != a.Request.Digest {
		return badinput.Errorf("--run-id: run %s is open under another recipe or seed; "+
			"choose another run id, or follow that run: ropewalk follow %s", run, run)
	}
	if a.Request.Workflow == workflows.EvaluateRunName {
		if file != "" && file != a.Request.File {
			return badinput.Errorf("--run-id: run %s is open with another policy (checkpoint %.16s, this one is "+
				"%.16s); choose another run id", run, file, a.Request.File)
		}
		return nil
	}
	if file != a.Request.File {
		return badinput.Errorf("--run-id: run %s is open with the import of another file (SHA-256 %s, this one's is "+
			"%s); "+
			"choose another run id", run, file, a.Request.File)
	}
	return nil
}

// openInput returns the recipe, and the digest of the file, that an open workflow was started with; of an evaluation
// the digest of the policy. A resumed workflow has no recipe in its input: it continues under the record's.
func openInput(ctx context.Context, temporal starter, open Execution) (recipe *recipes.Resolved, file string,
	err error) {
	history := temporal.GetWorkflowHistory(ctx, open.run, open.id, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !history.HasNext() {
		return nil, "", errors.New("its history is empty")
	}
	first, err := history.Next()
	if err != nil {
		return nil, "", fmt.Errorf("read its history: %w", err)
	}
	payloads := first.GetWorkflowExecutionStartedEventAttributes().GetInput()
	read := converter.GetDefaultDataConverter().FromPayloads
	var in workflows.TrainRunInput // of which the other workflows have a part
	switch open.Workflow {
	case workflows.ReprocessRunName:
		var i workflows.ReprocessInput
		err, file = read(payloads, &i), i.Digest
		in.Recipe, in.RecipeFile, in.RecipeYAML, in.Set = i.Recipe, i.RecipeFile, i.RecipeYAML, i.Set
	case workflows.EvaluateRunName:
		var i workflows.EvaluateInput
		err, file = read(payloads, &i), i.Policy.Digest
		in.Resume, in.RecipeFile, in.RecipeYAML, in.Set = i.Resume, i.RecipeFile, i.RecipeYAML, i.Set
	default:
		err = read(payloads, &in)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read its input: %w", err)
	}
	if in.Resume {
		return nil, "", nil
	}
	r, err := recipes.Resolve(cmp.Or(in.Recipe, in.RecipeFile), in.RecipeYAML, in.Set, in.Seed, in.Steps)
	if err != nil {
		return nil, "", fmt.Errorf("read its recipe: %w", err)
	}
	return r, file, nil
}
