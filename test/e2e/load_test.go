package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Half of Temporal's limits for a workflow.
const (
	mostEvents  = 51_200 / 2
	mostBytes   = 50 << 20 / 2
	mostPayload = 2 << 20 / 2 // bytes of one command or event; a gRPC message may have 4 MiB
	mostPending = 2_000 / 2   // activities and child workflows, each
)

// load is one workflow's use of what Temporal limits.
type load struct {
	own      int            // events without those of workflow tasks
	tasks    int            // events of workflow tasks, whose number depends on how other events coincide
	bytes    int            // of the history, as the server counts them
	ownBytes int            // of these, without the events of workflow tasks
	taskSize int            // the largest event of a workflow task
	payloads map[string]int // the largest for each kind of event
	pending  int            // most activities and children that were open at once
	children int
}

func (l load) String() string {
	kind, size := l.payload()
	return fmt.Sprintf("%d events (%d of workflow tasks), %d bytes, largest payload %d (%s), at most %d pending",
		l.own+l.tasks, l.tasks, l.bytes, size, kind, l.pending)
}

// payload is the largest and the kind of its event.
func (l load) payload() (kind string, size int) {
	for _, k := range slices.Sorted(maps.Keys(l.payloads)) {
		if l.payloads[k] > size {
			kind, size = k, l.payloads[k]
		}
	}
	return kind, size
}

// within requires that a workflow stays below half of every limit.
func (l load) within(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s: %s", what, l)
	_, payload := l.payload()
	require.LessOrEqual(t, l.own+l.tasks, mostEvents, what)
	require.LessOrEqual(t, l.bytes, mostBytes, what)
	require.LessOrEqual(t, payload, mostPayload, what)
	require.LessOrEqual(t, l.pending, mostPending, what)
}

// times is the load of a history with n steps instead of one.
func (l load) times(steps int) load {
	l.own, l.tasks, l.bytes, l.ownBytes = steps*l.own, steps*l.tasks, steps*l.bytes, steps*l.ownBytes
	return l
}

// most has the larger of every figure.
func (l load) most(o load) load {
	out := load{
		own: max(l.own, o.own), tasks: max(l.tasks, o.tasks), bytes: max(l.bytes, o.bytes),
		ownBytes: max(l.ownBytes, o.ownBytes),
		taskSize: max(l.taskSize, o.taskSize), pending: max(l.pending, o.pending),
		children: max(l.children, o.children),
		payloads: map[string]int{},
	}
	for _, all := range []map[string]int{l.payloads, o.payloads} {
		for kind, size := range all {
			out.payloads[kind] = max(out.payloads[kind], size)
		}
	}
	return out
}

// loadOf measures a workflow's history.
func loadOf(t *testing.T, c client.Client, id string) load {
	t.Helper()
	described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	require.NoError(t, err)
	out := load{bytes: int(described.WorkflowExecutionInfo.HistorySizeBytes), payloads: map[string]int{}}
	out.ownBytes = out.bytes
	open, scheduled := 0, map[int64]string{}
	for events := fetch(c, id, ""); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		kind := strings.TrimPrefix(event.EventType.String(), "EVENT_TYPE_")
		if strings.HasPrefix(kind, "WorkflowTask") {
			size := proto.Size(event)
			out.tasks, out.ownBytes, out.taskSize = out.tasks+1, out.ownBytes-size, max(out.taskSize, size)
			continue
		}
		out.own++
		if a := event.GetActivityTaskScheduledEventAttributes(); a != nil {
			scheduled[event.EventId] = a.ActivityType.Name
			kind = a.ActivityType.Name + " scheduled"
		} else if a := event.GetActivityTaskCompletedEventAttributes(); a != nil {
			kind = scheduled[a.ScheduledEventId] + " completed"
		}
		opened := opens(event)
		if open += opened; opened > 0 && event.GetStartChildWorkflowExecutionInitiatedEventAttributes() != nil {
			out.children++
		}
		out.pending = max(out.pending, open)
		if size := largest(event.ProtoReflect()); size > 0 {
			out.payloads[kind] = max(out.payloads[kind], size)
		}
	}
	return out
}

// opens is the change in pending activities and children by an event.
func opens(e *historypb.HistoryEvent) int {
	switch {
	case e.GetActivityTaskScheduledEventAttributes() != nil,
		e.GetStartChildWorkflowExecutionInitiatedEventAttributes() != nil:
		return 1
	case e.GetActivityTaskCompletedEventAttributes() != nil, e.GetActivityTaskFailedEventAttributes() != nil,
		e.GetActivityTaskTimedOutEventAttributes() != nil, e.GetChildWorkflowExecutionCompletedEventAttributes() != nil,
		e.GetChildWorkflowExecutionFailedEventAttributes() != nil:
		return -1
	}
	return 0
}

// largest is the size of the largest payloads of a message.
func largest(m protoreflect.Message) int {
	if p, ok := m.Interface().(*commonpb.Payloads); ok {
		return proto.Size(p)
	}
	most := 0
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				most = max(most, largest(v.List().Get(i).Message()))
			}
		default:
			most = max(most, largest(v.Message()))
		}
		return true
	})
	return most
}
