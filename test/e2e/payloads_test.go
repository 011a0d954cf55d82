package e2e

import (
	"context"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/sdk/client"
)

// largestPayload returns the size in bytes of the largest payload in the histories of a run, of the executions that it
// continued as, and of its steps.
func largestPayload(ctx context.Context, c client.Client, run string) (most int, err error) {
	for execution, first := "", true; first || execution != ""; first = false {
		if execution, err = walkPayloads(ctx, c, run, execution, &most, true); err != nil {
			return 0, fmt.Errorf("read the history of %s: %w", run, err)
		}
	}
	return most, nil
}

// walkPayloads reads one history and its children's. It returns the execution before, since a run's latest
// execution is read first.
func walkPayloads(ctx context.Context, c client.Client, id, execution string, most *int, children bool,
) (before string, err error) {
	history := c.GetWorkflowHistory(ctx, id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return "", err
		}
		size, err := largestIn(ctx, event)
		if err != nil {
			return "", err
		}
		*most = max(*most, size)
		if a := event.GetWorkflowExecutionStartedEventAttributes(); a != nil {
			before = a.ContinuedExecutionRunId
		}
		if a := event.GetChildWorkflowExecutionStartedEventAttributes(); a != nil && children {
			child := a.WorkflowExecution
			if _, err := walkPayloads(ctx, c, child.WorkflowId, child.RunId, most, true); err != nil && !gone(err) {
				return "", err
			}
		}
	}
	return before, nil
}

// gone reports whether an error means that retention has removed a history.
func gone(err error) bool { return strings.Contains(err.Error(), "not found") }

// largestIn looks through every field of an event.
func largestIn(ctx context.Context, event *historypb.HistoryEvent) (most int, err error) {
	err = proxy.VisitPayloads(ctx, event, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, all []*commonpb.Payload) ([]*commonpb.Payload, error) {
			for _, p := range all {
				most = max(most, len(p.GetData()))
			}
			return all, nil
		},
	})
	return most, err
}
