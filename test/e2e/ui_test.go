package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// dial connects to the home's Temporal server as any program may.
func (h *home) dial(t *testing.T) client.Client {
	t.Helper()
	address, namespace := variable(h.env, "TEMPORAL_ADDRESS"), h.namespace
	if namespace == "" {
		a := h.state(t).Addresses
		address, namespace = a.Temporal, a.Namespace
	}
	c, err := client.Dial(client.Options{
		HostPort: address, Namespace: namespace, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// startFromUI starts a workflow as Temporal's UI and `temporal workflow start` do: a type, a queue,
// and one JSON object.
func startFromUI(t *testing.T, c client.Client, workflow, id string, input map[string]any) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: id, TaskQueue: "cpu"}, workflow,
		input)
	require.NoError(t, err)
	return run
}

func TestRunStartedFromTheUI(t *testing.T) {
	h, want := needs(t, sharedStack)
	c := h.dial(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	text, err := os.ReadFile(tiny())
	require.NoError(t, err)
	// No run_id: the workflow's id names the run.
	run := startFromUI(t, c, workflows.TrainRunName, "from-the-ui", map[string]any{
		"recipe_yaml": strings.Replace(string(text), "steps: 4\n", "steps: 9\n", 1), "seed": 1, "steps": steps,
	})
	var out workflows.TrainRunResult
	require.NoError(t, run.Get(ctx, &out))
	h.undisturbed(t, want, report{Run: "from-the-ui", Digest: out.Policy.Digest})

	var found []string
	eventually(t, func() bool { // visibility lags behind
		found = nil
		list, err := c.ListWorkflow(ctx,
			&workflowservice.ListWorkflowExecutionsRequest{
				Query: `RunID="from-the-ui"`})
		require.NoError(t, err)
		for _, e := range list.Executions {
			if e.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
				found = append(found, e.Execution.WorkflowId)
			}
		}
		return len(found) == steps+1
	}, "the run and its steps to be found by RunID; found %v", found)
	ids := []string{"from-the-ui"}
	for step := 1; step <= steps; step++ {
		ids = append(ids, fmt.Sprintf("from-the-ui/step=%d", step))
	}
	require.ElementsMatch(t, ids, found)
	list, err := c.ListWorkflow(ctx,
		&workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf(`RunID="from-the-ui" and Step=%d and Stage="done"`, steps)})
	require.NoError(t, err)
	require.Len(t, list.Executions, 1)

	value, err := c.QueryWorkflow(ctx, "from-the-ui", "", workflows.QueryProgress)
	require.NoError(t, err)
	var p workflows.Progress
	require.NoError(t, value.Get(&p))
	require.Len(t, p.Lines, steps)
	value, err = c.QueryWorkflow(ctx, "from-the-ui", "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&metadata))
	require.Contains(t, metadata.CurrentDetails, "| step | reward | success |")
}

func TestBadInputFromTheUIFailsAtOnce(t *testing.T) {
	h, _ := needs(t, sharedStack)
	c := h.dial(t)
	text, err := os.ReadFile(tiny())
	require.NoError(t, err)
	typo := strings.Replace(string(text), "policy:", "polcy:", 1)
	require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "typo.yaml"), []byte(typo), 0o600))
	for _, c2 := range []struct {
		name  string
		input map[string]any
		cli   []string // the same on the command line: its words must be in the failure
		want  string   // where the command line cannot say it
	}{
		{"unknown field", map[string]any{"recipe": "quickstart", "stepz": 3}, nil, `unknown field "stepz"`},
		{"wrong type", map[string]any{"recipe": "quickstart", "seed": "one"}, nil,
			"input: seed: must be a whole number, got a text"},
		{"nothing", map[string]any{}, nil, "recipe: name a built-in recipe"},
		{"unknown recipe", map[string]any{"recipe": "quickstrt"}, nil, "quickstrt"},
		{"combination", map[string]any{"recipe": "quickstart", "set": []string{"resample.roc.keep=3000"}},
			[]string{"run", "quickstart", "--set", "resample.roc.keep=3000"}, ""},
		{"typo in the recipe", map[string]any{"recipe_yaml": typo, "recipe_file": "typo.yaml"},
			[]string{"run", "typo.yaml"}, "did you mean policy?"},
		{"imported trajectories", map[string]any{"recipe": "openai-offline"}, nil, "which no policy can be run on"},
	} {
		t.Run(c2.name, func(t *testing.T) {
			want := c2.want
			if c2.cli != nil {
				r := h.run(t, c2.cli...)
				require.Equal(t, 2, r.code, r.err)
				said := strings.TrimSpace(strings.TrimPrefix(r.err, "ropewalk: "))
				require.Contains(t, said, want)
				want = said
			}
			id := "bad-" + strings.ReplaceAll(c2.name, " ", "-")
			failsAtOnce(t, c, startFromUI(t, c, workflows.TrainRunName, id, c2.input), want)
		})
	}
	t.Run("import", func(t *testing.T) {
		run := startFromUI(t, c, workflows.ReprocessRunName, "bad-import", map[string]any{"format": "csv"})
		failsAtOnce(t, c, run, `format: must be openai, got "csv"`)
	})
}

// failsAtOnce requires that a workflow fails for its input, in one try of everything.
func failsAtOnce(t *testing.T, c client.Client, run client.WorkflowRun, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := run.Get(ctx, nil)
	var failure *temporal.ApplicationError
	require.True(t, errors.As(err, &failure), "%v", err)
	require.Equal(t, api.FailBadInput, failure.Type())
	require.True(t, failure.NonRetryable())
	require.Contains(t, failure.Message(), want)
	require.NotContains(t, failure.Message(), "resume", "there is nothing to resume")
	tries := 0
	for history := c.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
		event, err := history.Next()
		require.NoError(t, err)
		if a := event.GetActivityTaskStartedEventAttributes(); a != nil {
			tries++
			require.EqualValues(t, 1, a.Attempt)
		}
		require.Nil(t, event.GetWorkflowTaskFailedEventAttributes(), "the input was decoded")
	}
	require.LessOrEqual(t, tries, 1)
	eventually(t, func() bool {
		list, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf(`WorkflowId="%s" and FailureKind="%s"`, run.GetID(), api.FailBadInput)})
		require.NoError(t, err)
		return len(list.Executions) == 1
	}, "%s to be found by FailureKind", run.GetID())
}
