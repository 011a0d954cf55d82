package runs

import (
	"context"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// payloads measures the payloads that workflows and activities pass through Temporal.
type payloads struct{ client client.Client }

// largest returns the size in bytes of the largest payload in the histories of a run, of the executions that it
// continued as, and of its steps.
func (p payloads) largest(ctx context.Context, run string) (int, error) {
	most := 0
	execution := ""
	for {
		next, err := p.walk(ctx, run, execution, &most, true)
		if err != nil {
			return 0, fmt.Errorf("read the history of %s: %w", run, err)
		}
		if next == "" {
			return most, nil
		}
		execution = next
	}
}

// walk reads one history and those of its children. It returns the execution before, since a run's latest execution is
// read first.
func (p payloads) walk(ctx context.Context, id, execution string, most *int, children bool) (before string, err error) {
	history := p.client.GetWorkflowHistory(ctx, id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return "", err
		}
		*most = max(*most, largestPayload(event))
		if a := event.GetWorkflowExecutionStartedEventAttributes(); a != nil {
			before = a.ContinuedExecutionRunId
		}
		if a := event.GetChildWorkflowExecutionStartedEventAttributes(); a != nil && children {
			child := a.WorkflowExecution
			if _, err := p.walk(ctx, child.WorkflowId, child.RunId, most, true); err != nil && !gone(err) {
				return "", err
			}
		}
	}
	return before, nil
}

// gone reports whether an error means that retention has removed a history.
func gone(err error) bool { return strings.Contains(err.Error(), "not found") }

// largestPayload looks through every field of an event.
func largestPayload(event *historypb.HistoryEvent) int {
	most := 0
	visit(event.ProtoReflect(), func(p *commonpb.Payload) { most = max(most, len(p.Data)) })
	return most
}

func visit(m protoreflect.Message, found func(*commonpb.Payload)) {
	if p, ok := m.Interface().(*commonpb.Payload); ok {
		found(p)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			if f.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey,
					v protoreflect.Value) bool {
					visit(v.Message(), found)
					return true
				})
			}
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				visit(v.List().Get(i).Message(), found)
			}
		default:
			visit(v.Message(), found)
		}
		return true
	})
}
