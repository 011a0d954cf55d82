package rollout

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
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

// Load is what a step costs a Temporal server.
type Load struct {
	// Events are those of the step's workflow and of its children, with its part of the events of the run's workflow.
	Events float64 `json:"events"`
	Shards int     `json:"shards"` // of its rollout
}

// Limit is the most events that a step of interleaved rollouts may have, whatever the number of turns.
func (l Load) Limit() int { return 60 + 15*l.Shards }

// Over is how many events the step has for each that it may have.
func (l Load) Over() float64 { return l.Events / float64(l.Limit()) }

// StepLoads returns the load of each step of a finished run, in no particular order. What the run's workflow itself has
// is shared out equally among them.
func StepLoads(ctx context.Context, h Histories, run string) ([]Load, error) {
	steps, around, err := stepsOf(ctx, h, run)
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return around.shared(run)
	}
	out := make([]Load, len(steps))
	for i, step := range steps {
		if err := out[i].add(ctx, h, step); err != nil {
			return nil, err
		}
		out[i].Events += around.Events / float64(len(steps))
	}
	return out, nil
}

// ownLoad is what the run's workflow itself has.
type ownLoad struct {
	Load
	steps int // that the run took itself
}

// shared returns the load of each of the run's own steps.
func (l ownLoad) shared(run string) ([]Load, error) {
	if l.steps == 0 {
		return nil, fmt.Errorf("the history of run %s has no steps", run)
	}
	each := Load{Events: l.Events / float64(l.steps), Shards: l.Shards / l.steps}
	return slices.Repeat([]Load{each}, l.steps), nil
}

// count counts an event.
func (l *Load) count(e *historypb.HistoryEvent) {
	l.Events++
	if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == api.RunEpisodes {
		l.Shards++
	}
}

// stepsOf returns the workflows of a run's steps, and what the run's workflow itself has. A long run is several
// executions, which are read from the latest to the first.
func stepsOf(ctx context.Context, h Histories, run string) (steps []*commonpb.WorkflowExecution, own ownLoad,
	err error) {
	for execution, more := "", true; more; more = execution != "" {
		earlier := ""
		if err := each(ctx, h, run, execution, func(e *historypb.HistoryEvent) {
			own.count(e)
			switch e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() {
			case api.UpdatePolicy, api.UpdateAndPublish:
				own.steps++
			}
			if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
				earlier = a.GetContinuedExecutionRunId()
			}
			if a := e.GetChildWorkflowExecutionStartedEventAttributes(); a.GetWorkflowType().GetName() ==
				workflows.TrainStepName {
				steps = append(steps, a.GetWorkflowExecution())
			}
		}); err != nil {
			return nil, own, err
		}
		execution = earlier
	}
	return steps, own, nil
}

// add adds a workflow and its children.
func (l *Load) add(ctx context.Context, h Histories, w *commonpb.WorkflowExecution) error {
	var children []*commonpb.WorkflowExecution
	if err := each(ctx, h, w.GetWorkflowId(), w.GetRunId(), func(e *historypb.HistoryEvent) {
		l.count(e)
		if a := e.GetChildWorkflowExecutionStartedEventAttributes(); a != nil {
			children = append(children, a.GetWorkflowExecution())
			if a.GetWorkflowType().GetName() == workflows.RolloutShardName {
				l.Shards++
			}
		}
	}); err != nil {
		return err
	}
	for _, child := range children {
		if err := l.add(ctx, h, child); err != nil {
			return err
		}
	}
	return nil
}
