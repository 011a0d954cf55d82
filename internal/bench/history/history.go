// Package history reads the histories of measured runs on a Temporal server: how many events each step has (StepLoads),
// and how long activities take (Trips, Measure).
//
// Glossary. A *trip* of an activity is the time from the event of its scheduling until its workflow has taken the
// result. A *bare* activity does nothing. A *load* is what a step costs the server.
package history

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// Histories is where histories are read: a client.Client.
type Histories interface {
	// GetWorkflowHistory iterates over the events of an execution of a workflow; "" is the latest execution.
	GetWorkflowHistory(ctx context.Context, workflow, execution string, wait bool,
		filter enums.HistoryEventFilterType) client.HistoryEventIterator
}

// Dial connects to the Temporal server of a program's stack, which is up. The caller closes the client.
func Dial(ctx context.Context, program bench.Program) (client.Client, error) {
	servers, err := program.Output(ctx, "env")
	if err != nil {
		return nil, err
	}
	options := client.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}
	for line := range strings.Lines(servers) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "TEMPORAL_ADDRESS":
			options.HostPort = value
		case "TEMPORAL_NAMESPACE":
			options.Namespace = value
		}
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	return c, nil
}

// each calls f with the events of one execution of a workflow, in order. An empty execution is the latest one.
func each(ctx context.Context, h Histories, workflow, execution string, f func(*historypb.HistoryEvent)) error {
	events := h.GetWorkflowHistory(ctx, workflow, execution, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return fmt.Errorf("read the history of %s: %w", workflow, err)
		}
		f(e)
	}
	return nil
}
