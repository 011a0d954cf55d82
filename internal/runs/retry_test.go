package runs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/stack"
)

// A server that is slow or away is Start again; what it answers, and the command's own end, stay.
func TestPatiently(t *testing.T) {
	answers := func(list ...error) (ask func(context.Context) error, Start *int) {
		n := 0
		return func(context.Context) error { n++; return list[n-1] }, &n
	}
	for _, passing := range []error{
		context.DeadlineExceeded, fmt.Errorf("start run: %w",
			serviceerror.NewDeadlineExceeded("context deadline exceeded")),
		serviceerror.NewUnavailable("connection refused"),
		serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW, "busy"),
	} {
		ask, Start := answers(passing, nil)
		require.NoError(t, retryTransient(t.Context(), nil, ask), "%v", passing)
		require.Equal(t, 2, *Start)
	}
	for _, final := range []error{serviceerror.NewNotFound("no such run"), errors.New("bad recipe")} {
		ask, Start := answers(final)
		require.ErrorIs(t, retryTransient(t.Context(), nil, ask), final)
		require.Equal(t, 1, *Start)
	}
	lost := make(chan struct{})
	close(lost)
	ask, Start := answers(context.DeadlineExceeded)
	require.ErrorIs(t, retryTransient(t.Context(), lost, ask), context.DeadlineExceeded, "the stack is lost")
	require.Equal(t, 1, *Start)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	ask, Start = answers(context.DeadlineExceeded)
	require.ErrorIs(t, retryTransient(ended, nil, ask), context.DeadlineExceeded, "the command was interrupted")
	require.Equal(t, 1, *Start)
}

// executions lets a session meet one outcome of a workflow after another, and a status after each.
func executions(t *testing.T, outcomes []error, statuses ...enumspb.WorkflowExecutionStatus) *Session {
	c := mocks.NewClient(t)
	for _, err := range outcomes {
		run := mocks.NewWorkflowRun(t)
		run.On("Get", mock.Anything, mock.Anything).Return(err).Once()
		c.On("GetWorkflow", mock.Anything, "run", "").Return(run).Once()
	}
	for _, s := range statuses {
		c.On("DescribeWorkflowExecution", mock.Anything, "run",
			"").Return(&workflowservice.DescribeWorkflowExecutionResponse{
			WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: s}}, nil).Once()
	}
	return &Session{Temporal: c, Lease: &stack.Lease{}}
}

// Waiting for a result that fails again and again goes on while the server answers other questions, and ends when it
// answers none.
func TestAwaitOutlastsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gets = 5
		s := executions(t, nil)
		c := s.Temporal.(*mocks.Client)
		waits := func(result error, times int) {
			run := mocks.NewWorkflowRun(t)
			run.On("Get", mock.Anything, mock.Anything).Run(func(mock.Arguments) {
				time.Sleep(70 * time.Second)
			}).Return(result).Times(times)
			c.On("GetWorkflow", mock.Anything, "run", "").Return(run).Times(times)
		}
		describes := func(err error) *mock.Call {
			return c.On("DescribeWorkflowExecution", mock.Anything, "run", "").Return(
				&workflowservice.DescribeWorkflowExecutionResponse{}, err)
		}
		waits(context.DeadlineExceeded, gets)
		waits(nil, 1)
		answers := describes(nil)
		require.NoError(t, s.Await(t.Context(), "run", nil))

		answers.Unset()
		waits(serviceerror.NewUnavailable("connection refused"), 2)
		describes(serviceerror.NewUnavailable("connection refused"))
		err := s.Await(t.Context(), "run", nil)
		require.ErrorContains(t, err, "requests to Temporal have failed for 2m")
		require.ErrorContains(t, err, "connection refused")
	})
}

// A reset ends the execution that is followed and starts another under the same id: the command goes
// on with that one. A run that someone ended stays ended.
func TestAwaitFollowsAReset(t *testing.T) {
	terminated := fmt.Errorf("workflow execution error: %w", &temporal.TerminatedError{})
	running, ended := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	completed := enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED

	s := executions(t, []error{terminated, terminated, nil}, running, completed)
	require.NoError(t, s.Await(t.Context(), "run", nil), "reset twice, the second one already done")
	s = executions(t, []error{terminated}, ended)
	require.ErrorIs(t, s.Await(t.Context(), "run", nil), terminated)
	s = executions(t, []error{context.DeadlineExceeded, nil})
	require.NoError(t, s.Await(t.Context(), "run", nil))
}
