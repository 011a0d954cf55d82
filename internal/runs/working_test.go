package runs

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// described answers with the pending activities of workflows.
type described map[string]*workflowservice.DescribeWorkflowExecutionResponse

func (d described) DescribeWorkflowExecution(
	_ context.Context, run, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if found, ok := d[run]; ok {
		return found, nil
	}
	return nil, errors.New("no such workflow")
}

func pending(t *testing.T, name string, done, total int, attempt int32, failure string,
	next time.Time) *workflowpb.PendingActivityInfo {
	t.Helper()
	beat, err := converter.GetDefaultDataConverter().ToPayloads(done, total)
	require.NoError(t, err)
	a := &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: name}, HeartbeatDetails: beat,
		Attempt: attempt}
	if failure != "" {
		a.LastFailure = &failurepb.Failure{Message: failure}
		a.NextAttemptScheduleTime = timestamppb.New(next)
	}
	return a
}

func TestWorkingFindsWhatARunDoes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	warm := described{"r": {PendingActivities: []*workflowpb.PendingActivityInfo{
		pending(t, api.WarmStart, 120, 400, 1, "", now)}}}
	require.Equal(t, Work{Activity: api.WarmStart, Done: 120, Total: 400},
		Working(t.Context(), warm, workflows.Progress{Run: "r"}, now))

	shard := workflows.ShardWorkflowID("r", 3, 1)
	stuck := described{
		"r": {PendingChildren: []*workflowpb.PendingChildExecutionInfo{{WorkflowId: workflows.StepWorkflowID("r", 3)}}},
		workflows.StepWorkflowID("r", 3): {
			PendingChildren: []*workflowpb.PendingChildExecutionInfo{{WorkflowId: shard}}},
		shard: {PendingActivities: []*workflowpb.PendingActivityInfo{
			pending(t, api.GenerateRollouts, 5, 9, 1, "", now),
			pending(t, api.ExecuteToolCalls, 0, 0, 3, "put x: "+store.ErrNoSpace.Error()+": make room",
				now.Add(30*time.Second))}},
	}
	w := Working(t.Context(), stuck, workflows.Progress{Run: "r", Step: 3, Stage: "step"}, now)
	require.Equal(t, "retrying: disk full (30 s)", w.Retrying())

	itself := described{"r": {PendingActivities: []*workflowpb.PendingActivityInfo{
		pending(t, api.RecordTimings, 0, 0, 1, "", now), pending(t, api.RunEpisodes, 5, 64, 1, "", now)}}}
	require.Equal(t, Work{Activity: api.RunEpisodes, Done: 5, Total: 64},
		Working(t.Context(), itself, workflows.Progress{Run: "r", Step: 3}, now))
}

func TestRetryingNamesTheCause(t *testing.T) {
	t.Parallel()
	require.Equal(t, "store unreachable", shortFailure("get y: "+store.ErrUnreachable.Error()+": dial tcp"))
	require.Equal(t, "its worker does not answer", shortFailure("activity Heartbeat timeout"))
	require.Equal(t, "first line", shortFailure("first line\nsecond"))
	require.Equal(t, 61, len([]rune(shortFailure(strings.Repeat("ä", 99)))))
	require.Empty(t, Work{}.Retrying())
	require.Equal(t, "retrying: disk full", Work{Failure: "disk full"}.Retrying())
}

func TestTheWarmStartHasABar(t *testing.T) {
	t.Parallel()
	var terminal bytes.Buffer
	view := NewProgressView(NewScreen(&terminal), true)
	view.Working(Work{Activity: api.WarmStart, Done: 100, Total: 400})
	view.Show(workflows.Progress{Run: "r", Steps: 4, Stage: schema.StageWarmStart})
	all := lines(terminal.String())
	require.Equal(t, "[███████░░░░░░░░░░░░░░░░░░░░░░░] 100/400 · warm start", all[len(all)-1])
}

// Where lines stay, each reason to try again is printed once.
func TestAReasonToTryAgainIsPrintedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	view := NewProgressView(&out, false)
	for range 3 {
		view.Working(Work{Activity: api.UpdatePolicy, Failure: "disk full", Next: 30 * time.Second})
		view.Show(at(1))
	}
	require.Equal(t, 1, strings.Count(out.String(), "retrying: disk full (30 s)\n"))
	view.Working(Work{})
	view.Working(Work{Activity: api.UpdatePolicy, Failure: "disk full"})
	require.Equal(t, 2, strings.Count(out.String(), "retrying: disk full"), "it went on in between")
}

// A terminal shows no more of a line than fits: a bar that wraps could not be removed.
func TestANarrowTerminal(t *testing.T) {
	t.Parallel()
	var terminal bytes.Buffer
	view := NewProgressView(NewScreen(&terminal), true)
	view.width = 80
	p := at(2)
	p.Lines[1].Excluded = 3
	view.firstAt = time.Now().Add(-time.Hour)
	view.Working(Work{Activity: api.UpdatePolicy, Failure: strings.Repeat("x", 60), Next: 30 * time.Second})
	view.Show(p)
	for _, line := range lines(terminal.String()) {
		require.Less(t, len([]rune(line)), 80, line)
	}
	require.Contains(t, terminal.String(), "3 excluded")
}
