package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Times of ending a workflow.
const (
	endWithin    = 20 * time.Second // all of it, also under load
	cancelWithin = 5 * time.Second  // until a workflow that was asked to end is terminated
	closedEvery  = 100 * time.Millisecond
)

// End ends a run's workflow and notes the state that it leaves the run in, with the reason. The workflow is cancelled,
// and Temporal's UI shows it so; where no worker answers, it is terminated. A workflow that is closed stays as it is.
func (s *Session) End(ctx context.Context, run string, as status.State, reason string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	NoteState(ctx, s.Store, run, as, reason)
	return s.retryTransient(ctx, func(ctx context.Context) error { return s.end(ctx, run, reason) })
}

func (s *Session) end(ctx context.Context, run, reason string) error {
	if s.workerAnswers() {
		closed, err := s.cancel(ctx, run, reason)
		if err != nil || closed {
			return err
		}
	}
	return ignoreClosed(s.Temporal.TerminateWorkflow(ctx, run, "", reason))
}

// workerAnswers reports whether a worker may take up a cancellation: the local stack's, or one of the user's server.
func (s *Session) workerAnswers() bool {
	if !s.Local() {
		return true
	}
	runs, err := stack.WorkerRuns()
	return err == nil && runs
}

// cancel asks the workflow to end, and waits until it has.
func (s *Session) cancel(ctx context.Context, run, reason string) (closed bool, err error) {
	_, err = s.Temporal.WorkflowService().RequestCancelWorkflowExecution(ctx,
		&workflowservice.RequestCancelWorkflowExecutionRequest{
			Namespace: s.Lease.Addresses().Namespace, Reason: reason, Identity: "ropewalk",
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run},
		})
	if err = ignoreClosed(err); err != nil {
		return false, err
	}
	for deadline := time.Now().Add(cancelWithin); time.Now().Before(deadline); {
		last, err := LastOf(ctx, s.Temporal, run)
		if err != nil || !last.Open {
			return err == nil, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(closedEvery):
		}
	}
	return false, nil
}

// ignoreClosed forgives that there is no open workflow to end.
func ignoreClosed(err error) error {
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return nil
	}
	return err
}

// NoteState notes in the record how a command leaves a run. Without the note, a reader who asks no server knows less,
// and nothing else depends on it: so a store that does not answer is only logged.
func NoteState(ctx context.Context, objects store.Store, run string, as status.State, reason string) {
	note := schema.NewStateNote(string(as), "", reason, time.Now())
	text, err := schema.Canonical(note)
	if err == nil {
		err = objects.PutIfAbsent(ctx, schema.StateKey(run, note), text)
	}
	if err != nil {
		slog.Warn("note the run's state", "run", run, "state", as, "error", fmt.Errorf("%s: %w", objects, err))
	}
}
