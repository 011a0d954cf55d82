package rollout

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// kept are histories by workflow and execution.
type kept map[string][]*historypb.HistoryEvent

func (k kept) GetWorkflowHistory(_ context.Context, workflow, execution string, _ bool,
	_ enums.HistoryEventFilterType) client.HistoryEventIterator {
	return &reading{k[workflow+" "+execution]}
}

// reading fails where there are no events at all, as a server does.
type reading struct{ left []*historypb.HistoryEvent }

func (r *reading) HasNext() bool { return len(r.left) != 1 || r.left[0] != nil }

func (r *reading) Next() (*historypb.HistoryEvent, error) {
	if len(r.left) == 0 {
		return nil, errors.New("workflow not found")
	}
	e := r.left[0]
	if r.left = r.left[1:]; len(r.left) == 0 {
		r.left = []*historypb.HistoryEvent{nil}
	}
	return e, nil
}

// of is the history of a workflow that began after an earlier execution, with other events.
func of(earlier string, events ...*historypb.HistoryEvent) []*historypb.HistoryEvent {
	began := &historypb.WorkflowExecutionStartedEventAttributes{ContinuedExecutionRunId: earlier}
	return append([]*historypb.HistoryEvent{{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: began}}}, events...)
}

func child(kind, workflow string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ChildWorkflowExecutionStartedEventAttributes{
		ChildWorkflowExecutionStartedEventAttributes: &historypb.ChildWorkflowExecutionStartedEventAttributes{
			WorkflowType: &commonpb.WorkflowType{Name: kind}, WorkflowExecution: &commonpb.WorkflowExecution{
				WorkflowId: workflow, RunId: "only"}}}}
}

// scheduled schedules an activity at a number of milliseconds.
func scheduled(id, at int64, name string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: id, EventType: enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
		EventTime: timestamppb.New(time.UnixMilli(at)),
		Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: name}}}}
}

func completed(id int64) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
		Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
				ScheduledEventId: id}}}
}

func taken(at int64) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
		EventTime: timestamppb.New(time.UnixMilli(at))}
}

// A run of two executions has three steps. The seven events of its workflow are shared out among them. A step's events
// are its own and those of its children, and its shards are activities or children. A run that takes its steps itself
// has all events.
func TestLoadsOfSteps(t *testing.T) {
	other := &historypb.HistoryEvent{}
	k := kept{
		"run ":      of("first", child(workflows.TrainStepName, "step 3"), child("Evaluate", "evaluation")),
		"run first": of("", child(workflows.TrainStepName, "step 1"), child(workflows.TrainStepName, "step 2"), other),
		"step 1 only": of("", scheduled(2, 0, api.RunEpisodes), scheduled(3, 0, api.RunEpisodes), completed(2),
			completed(3)),
		"step 2 only": of("", scheduled(2, 0, api.MakeBatch)),
		"step 3 only": of("", child(workflows.RolloutShardName, "shard")),
		"shard only":  of("", other, other),
	}
	loads, err := StepLoads(t.Context(), k, "run")
	require.NoError(t, err)
	const own = 7.0 / 3
	for i, want := range []Load{{Events: 5 + own, Shards: 1}, {Events: 5 + own, Shards: 2}, {Events: 2 + own}} {
		require.InDelta(t, want.Events, loads[i].Events, 1e-9)
		require.Equal(t, want.Shards, loads[i].Shards)
	}
	require.Equal(t, 90, loads[1].Limit())
	require.InDelta(t, (5+own)/90, loads[1].Over(), 1e-9)

	delete(k, "shard only")
	_, err = StepLoads(t.Context(), k, "run")
	require.EqualError(t, err, "read the history of shard: workflow not found")

	itself := kept{
		"run ": of("first", scheduled(2, 0, api.RunEpisodes), scheduled(3, 0, api.RunEpisodes),
			scheduled(4, 0, api.UpdatePolicy), completed(4)),
		"run first": of("", scheduled(2, 0, api.RunEpisodes), scheduled(3, 0, api.RunEpisodes),
			scheduled(4, 0, api.UpdateAndPublish), other, other),
	}
	loads, err = StepLoads(t.Context(), itself, "run")
	require.NoError(t, err)
	require.Equal(t, []Load{{Events: 5.5, Shards: 2}, {Events: 5.5, Shards: 2}}, loads)
	_, err = StepLoads(t.Context(), kept{"run ": of("")}, "run")
	require.EqualError(t, err, "the history of run run has no steps")
}

// A trip ends when a workflow task that has the result is completed. Tasks that began before it do not count, nor do
// other activities.
func TestTrips(t *testing.T) {
	k := kept{"step ": of("", scheduled(2, 100, "A"), scheduled(3, 110, "B"), scheduled(4, 120, "A"), taken(130),
		completed(3), taken(140), completed(4), completed(2), taken(150), taken(160), scheduled(9, 170, "A"))}
	trips, err := Trips(t.Context(), k, "step", "A")
	require.NoError(t, err)
	require.Equal(t, []float64{30, 50}, trips)
	require.Equal(t, 2.5, RoundTrips{Stage: 50, Bare: 20}.Ratio())
}
