package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
)

// Times of sending a request to Temporal again. Its client retries for a minute while the server is away, but never a
// request that took longer than its ten seconds, as requests do on a machine under load.
const (
	retryFor   = 2 * time.Minute // how long requests may fail in a row
	retryEvery = 500 * time.Millisecond
)

// retryTransient repeats a request while the server is away or slow, and returns any other answer. The request must be
// harmless to repeat. It gives up when the stack is lost, or when requests have failed for retryFor.
func (s *Session) retryTransient(ctx context.Context, request func(context.Context) error) error {
	return retryTransient(ctx, s.Lease.Done(), request)
}

func retryTransient(ctx context.Context, lost <-chan struct{}, request func(context.Context) error) error {
	failingSince := time.Now()
	for {
		began := time.Now()
		err := request(ctx)
		if err == nil || ctx.Err() != nil || !transient(err) {
			return err
		}
		// A request that waited for long, such as one for a result, worked until it failed.
		if time.Since(began) > retryFor {
			failingSince = time.Now()
		}
		if failed := time.Since(failingSince); failed > retryFor {
			return fmt.Errorf("requests to Temporal have failed for %s: %w", failed.Round(time.Second), err)
		}
		slog.Debug("ask Temporal again", "error", err)
		select {
		case <-lost:
			return err
		case <-ctx.Done():
			return err
		case <-time.After(retryEvery):
		}
	}
}

// transient reports whether an error of Temporal's client means that the server is away or slow.
func transient(err error) bool {
	var (
		slow  *serviceerror.DeadlineExceeded
		away  *serviceerror.Unavailable
		busy  *serviceerror.ResourceExhausted
		early *serviceerror.WorkflowNotReady   // it continues as new
		ended *temporal.WorkflowExecutionError // the workflow's own failure, whatever it was
	)
	if errors.As(err, &ended) {
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) || errors.As(err, &away) ||
		errors.As(err, &busy) || errors.As(err, &early)
}

// Await waits for a workflow's result. A workflow that was reset ends as terminated, and another
// execution goes on under its id: Await then waits for that one. It gives up when the server does not even say how the
// workflow is: waiting for a result may fail for longer, on a machine that is stopped now and then.
func (s *Session) Await(ctx context.Context, id string, result any) error {
	for {
		err := s.retryTransient(ctx, func(ctx context.Context) error {
			return s.Temporal.GetWorkflow(ctx, id, "").Get(ctx, result)
		})
		if err != nil && transient(err) && ctx.Err() == nil {
			if _, lookErr := s.Describe(ctx, id); lookErr == nil {
				continue
			}
			return err
		}
		var ended *temporal.TerminatedError
		if !errors.As(err, &ended) {
			return err
		}
		d, lookErr := s.Describe(ctx, id)
		if lookErr != nil {
			return fmt.Errorf("look up workflow %s, which was terminated: %w", id, lookErr)
		}
		if d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED {
			return err
		}
	}
}

// Describe returns what Temporal knows about the latest execution under a workflow's id.
func (s *Session) Describe(ctx context.Context, id string) (d *workflowservice.DescribeWorkflowExecutionResponse,
	err error) {
	err = s.retryTransient(ctx, func(ctx context.Context) (err error) {
		d, err = s.Temporal.DescribeWorkflowExecution(ctx, id, "")
		return err
	})
	return d, err
}
