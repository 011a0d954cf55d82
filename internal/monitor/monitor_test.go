package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ropewalk/ropewalk/workflows"
)

// server is a Temporal server with some runs.
type server struct {
	now     time.Time
	runs    []*workflowpb.WorkflowExecutionInfo
	answers map[string]workflows.Progress // of queries; a run without one has no worker
	polled  time.Time                     // when a worker last polled
	fault   error
}

func payload(t *testing.T, v any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(v)
	require.NoError(t, err)
	return p
}

// execution is an open run with search attributes.
func (s *server) execution(t *testing.T, run, state string, attributes map[string]any) {
	t.Helper()
	fields := map[string]*commonpb.Payload{"RunState": payload(t, state)}
	for name, value := range attributes {
		fields[name] = payload(t, value)
	}
	s.runs = append(s.runs, &workflowpb.WorkflowExecutionInfo{
		Execution:        &commonpb.WorkflowExecution{WorkflowId: run},
		Type:             &commonpb.WorkflowType{Name: workflows.TrainRunName},
		Status:           enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		StartTime:        timestamppb.New(s.now.Add(-time.Hour)),
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: fields},
	})
}

func (s *server) WorkflowService() workflowservice.WorkflowServiceClient { return service{server: s} }

// service is the rest of the server's interface.
type service struct {
	workflowservice.WorkflowServiceClient
	server *server
}

func (s *server) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (
	*workflowservice.ListWorkflowExecutionsResponse, error) {
	if !strings.Contains(r.Query, `ExecutionStatus = "Running"`) {
		return nil, fmt.Errorf("unexpected query %s", r.Query)
	}
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: s.runs}, s.fault
}

func (s *server) QueryWorkflow(_ context.Context, run, _, query string, _ ...any) (converter.EncodedValue, error) {
	p, ok := s.answers[run]
	if !ok || query != workflows.QueryProgress {
		return nil, errors.New("no worker answers")
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(p)
	return converted{payloads}, err
}

// converted is the answer of a query.
type converted struct{ payloads *commonpb.Payloads }

func (c converted) HasValue() bool { return true }
func (c converted) Get(to any) error {
	return converter.GetDefaultDataConverter().FromPayloads(c.payloads, to)
}

func (s *server) DescribeWorkflowExecution(context.Context, string, string) (
	*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{}, nil
}

func (service) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption) (
	*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{Config: &namespacepb.NamespaceConfig{
		WorkflowExecutionRetentionTtl: durationpb.New(720 * time.Hour)}}, nil
}

func (s service) DescribeTaskQueue(_ context.Context, r *workflowservice.DescribeTaskQueueRequest, _ ...grpc.CallOption,
) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{
		Pollers: []*taskqueuepb.PollerInfo{{Identity: "a", LastAccessTime: timestamppb.New(s.server.polled)},
			{Identity: "a", LastAccessTime: timestamppb.New(s.server.polled)}},
		Stats: &taskqueuepb.TaskQueueStats{ApproximateBacklogCount: 3, ApproximateBacklogAge: durationpb.New(90e9)},
	}, nil
}

func (s *server) monitor(most int) *Monitor {
	return New(Options{Temporal: s, Namespace: "n", MostRuns: most, Now: func() time.Time { return s.now },
		Queues: []Queue{{"cpu", true}, {"gpu", false}},
		Expiry: func(context.Context) (time.Duration, bool, error) { return 30 * 24 * time.Hour, true, nil }})
}

// expect compares some of the monitor's metrics.
func expect(t *testing.T, m *Monitor, want string, names ...string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(want) {
		lines = append(lines, strings.TrimSpace(line))
	}
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(m))
	got, err := r.Gather()
	require.NoError(t, err)
	var text strings.Builder
	for _, family := range got {
		for _, metric := range family.Metric {
			for _, name := range names {
				if family.GetName() == "ropewalk_"+name {
					var labels []string
					for _, l := range metric.Label {
						labels = append(labels, l.GetName()+"="+l.GetValue())
					}
					fmt.Fprintf(&text, "%s %s %v\n", name, strings.Join(labels, ","), metric.GetGauge().GetValue())
				}
			}
		}
	}
	require.Equal(t, strings.TrimSpace(strings.Join(lines, "\n")), strings.TrimSpace(text.String()))
}

func newServer() *server {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	return &server{now: now, polled: now.Add(-time.Minute), answers: map[string]workflows.Progress{}}
}

func TestFiguresOfOpenRuns(t *testing.T) {
	s := newServer()
	s.execution(t, "a", "running", map[string]any{"Step": 4, "Stage": "step", "Success": 0.25,
		"RunStarted": s.now.Add(-2 * time.Hour)})
	s.execution(t, "b", "parked", map[string]any{"Step": 2, "Stage": "parked", "FailureKind": "corrupt_record"})
	s.answers["a"] = workflows.Progress{Run: "a", Recipe: "tiny", Step: 4, Steps: 9, Lines: []workflows.StepLine{
		{Step: 2, Reward: 0.1}, {Step: 3, Reward: 0.5, Success: 0.75, Entropy: new(1.5),
			StageSeconds: map[string]float64{"update": 2}}}}
	s.answers["b"] = workflows.Progress{Run: "b", Parked: &workflows.Parked{
		Failures: []workflows.StageFailure{{Stage: "reward", Shard: 1}}}}
	m := s.monitor(0)
	require.NoError(t, m.Refresh(t.Context()))
	expect(t, m, `run_entropy_nats run=a 1.5
		run_finished_step run=a 3
		run_heldout_success_ratio run=a 0.25
		run_info recipe=,run=b,workflow=TrainRun 1
		run_info recipe=tiny,run=a,workflow=TrainRun 1
		run_parked kind=corrupt_record,run=b,stage=reward 1
		run_reward run=a 0.5
		run_stage_seconds run=a,stage=update 2
		run_state run=a,state=running 1
		run_state run=b,state=parked 1
		run_step run=a 4
		run_step run=b 2
		run_steps run=a 9
		run_steps run=b 0
		run_success_ratio run=a 0.75
		runs state=parked 1
		runs state=paused 0
		runs state=running 1`,
		"run_entropy_nats", "run_finished_step", "run_heldout_success_ratio", "run_info",
		"run_parked", "run_reward", "run_stage_seconds", "run_state", "run_step", "run_steps", "run_success_ratio",
		"runs")
	started := fmt.Sprintf("run_started_timestamp_seconds run=a %v\nrun_started_timestamp_seconds run=b %v",
		float64(s.now.Add(-2*time.Hour).Unix()), float64(s.now.Add(-time.Hour).Unix()))
	expect(t, m, started, "run_started_timestamp_seconds")
}

// A run that has ended has no series any more, and a run that no worker answers for keeps its state.
func TestSeriesEndWithTheirRun(t *testing.T) {
	s := newServer()
	s.execution(t, "a", "running", nil)
	m := s.monitor(0)
	require.NoError(t, m.Refresh(t.Context()))
	expect(t, m, "run_state run=a,state=running 1", "run_state", "run_reward")
	s.runs = nil
	require.NoError(t, m.Refresh(t.Context()))
	expect(t, m, "", "run_state", "run_reward")
}

// At most MostRuns are labels: those that wait for a person first.
func TestRunsAreBounded(t *testing.T) {
	s := newServer()
	for i := range 5 {
		s.execution(t, fmt.Sprint("r", i), "running", nil)
	}
	s.execution(t, "waits", "parked", nil)
	m := s.monitor(2)
	require.NoError(t, m.Refresh(t.Context()))
	expect(t, m, `run_state run=r0,state=running 1
		run_state run=waits,state=parked 1
		runs state=parked 1
		runs state=paused 0
		runs state=running 5
		runs_unlisted  4`, "runs", "run_state", "runs_unlisted")
}

func TestWhenARunMovesOn(t *testing.T) {
	s := newServer()
	s.execution(t, "a", "running", map[string]any{"Stage": "step", "Step": 1})
	m := s.monitor(0)
	moved := func() time.Time {
		s.now = s.now.Add(time.Minute)
		require.NoError(t, m.Refresh(t.Context()))
		return m.last.runs[0].moved
	}
	first := moved()
	require.Equal(t, s.now, first)
	require.Equal(t, first, moved(), "nothing has changed")
	s.runs[0].SearchAttributes.IndexedFields["Step"] = payload(t, 2)
	second := moved()
	require.Equal(t, s.now, second)
	require.Equal(t, second, moved())
}

func TestQueuesAndRetention(t *testing.T) {
	s := newServer()
	m := s.monitor(0)
	require.NoError(t, m.Refresh(t.Context()))
	expect(t, m, `queue_age_seconds kind=activity,queue=cpu 90
		queue_age_seconds kind=activity,queue=gpu 90
		queue_age_seconds kind=workflow,queue=cpu 90
		queue_backlog kind=activity,queue=cpu 3
		queue_backlog kind=activity,queue=gpu 3
		queue_backlog kind=workflow,queue=cpu 3
		queue_pollers kind=activity,queue=cpu 1
		queue_pollers kind=activity,queue=gpu 1
		queue_pollers kind=workflow,queue=cpu 1
		retention_seconds what=store 2.592e+06
		retention_seconds what=temporal 2.592e+06`, "queue_age_seconds", "queue_backlog", "queue_pollers",
		"retention_seconds")
	s.polled = s.now.Add(-5 * time.Minute)
	require.NoError(t, m.Refresh(t.Context()))
	expect(t, m, `queue_pollers kind=activity,queue=cpu 0
		queue_pollers kind=activity,queue=gpu 0
		queue_pollers kind=workflow,queue=cpu 0`, "queue_pollers")
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	s := newServer()
	s.execution(t, "a", "running", nil)
	m := s.monitor(0)
	expect(t, m, "monitor_up  0", "monitor_up", "runs")
	require.NoError(t, m.Refresh(t.Context()))
	s.fault = errors.New("unavailable")
	require.ErrorContains(t, m.Refresh(t.Context()), "list the open runs: unavailable")
	expect(t, m, "monitor_up  0\nrun_state run=a,state=running 1", "monitor_up", "run_state")
}
