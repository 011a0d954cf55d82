package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// Update sends an update to an open workflow and waits for its answer.
func (s *Session) Update(ctx context.Context, run, name string, out any, args ...any) error {
	if _, err := s.WorkflowType(ctx, run); err != nil {
		return err
	}
	if err := s.Note(ctx, run, name, args...); err != nil {
		return err
	}
	if workflows.TakesAsker(name) {
		args = append(slices.Clip(args), workflows.Asker{Actor: Actor()})
	}
	id := rand.Text() // one update, however often the request is repeated
	err := s.retryTransient(ctx, func(ctx context.Context) error {
		handle, err := s.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			UpdateID: id, WorkflowID: run, UpdateName: name, Args: args,
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err != nil {
			return err
		}
		return handle.Get(ctx, out)
	})
	return updateError(run, name, err)
}

// updateError returns the part of a refused update's error that its author wrote.
func updateError(run, name string, err error) error {
	if err == nil {
		return nil
	}
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return badinput.Errorf("%s: run %s is not open: it has ended, or no command continues it (`ropewalk resume "+
			"%s`)", name, run, run)
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) && slices.Contains([]string{api.FailBadInput, ""}, app.Type()) {
		return badinput.Errorf("%s", app.Message())
	}
	return fmt.Errorf("%s run %s: %w", name, run, err)
}

// WorkflowType names the workflow that a run is. It refuses a run that Temporal does not know.
func (s *Session) WorkflowType(ctx context.Context, run string) (string, error) {
	d, err := s.Describe(ctx, run)
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return "", badinput.Errorf("no run %q on the Temporal server; `ropewalk runs` lists them", run)
	}
	if err != nil {
		return "", fmt.Errorf("look up run %s: %w", run, err)
	}
	return d.GetWorkflowExecutionInfo().GetType().GetName(), nil
}
