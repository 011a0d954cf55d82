package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/workflows"
)

// pollEvery is how often a followed run is asked for its progress.
const pollEvery = 400 * time.Millisecond

func (a *app) followCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "follow RUN",
		Short:   "show a running run live",
		Example: "  ropewalk follow quickstart-s1-20260102-030405",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.join(cmd.Context(), needServers)
			if err != nil {
				return err
			}
			defer s.close()
			if err := s.exists(cmd.Context(), args[0]); err != nil {
				return err
			}
			_, err = a.follow(cmd.Context(), s, args[0])
			var parked parkedError
			if errors.As(err, &parked) {
				return a.parked(parked, false)
			}
			if err != nil && cmd.Context().Err() != nil {
				return silentError{exitInterrupted} // who only watches ends nothing
			}
			return runError(err)
		},
	}
}

// follow shows a run's steps until it ends and returns its result. The run itself goes on when ctx
// ends; it waits for the next command when the stack is lost. A run that parks ends the command with a
// parkedError, unless somebody sits at the terminal, where the stack stays up.
func (a *app) follow(ctx context.Context, s *session, run string) (workflows.TrainRunResult, error) {
	c := s.temporal
	type outcome struct {
		result workflows.TrainRunResult
		err    error
	}
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = c.GetWorkflow(ctx, run, "").Get(ctx, &o.result)
		ended <- o
	}()
	view := newProgressView(a.err, a.terminal)
	defer view.end()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case o := <-ended:
			if o.err == nil {
				view.poll(ctx, c, run)
			}
			return o.result, o.err
		case <-tick.C:
			if p, ok := view.poll(ctx, c, run); ok && p.Parked != nil && !a.resident {
				return workflows.TrainRunResult{}, parkedError{p}
			}
		case <-s.lease.Done():
			return workflows.TrainRunResult{}, fmt.Errorf("%w; everything committed is kept: mend the cause, then `ropewalk resume %s`", s.lost(), run)
		case <-ctx.Done():
			return workflows.TrainRunResult{}, ctx.Err()
		}
	}
}

// poll asks for the run's progress and shows what is new. A query may fail while a worker
// restarts or the run continues as new; the next poll sees the same and more.
func (v *progressView) poll(ctx context.Context, c client.Client, run string) (workflows.Progress, bool) {
	p, err := progress(ctx, c, run)
	if err != nil {
		slog.Debug("query progress", "run", run, "error", err)
		return p, false
	}
	v.show(p)
	return p, true
}

// progress asks a run how far it is.
func progress(ctx context.Context, c client.Client, run string) (workflows.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var p workflows.Progress
	value, err := c.QueryWorkflow(ctx, run, "", workflows.QueryProgress)
	if err != nil {
		return p, err
	}
	return p, value.Get(&p)
}

// interruptible turns an interruption into words on how to go on. On the local stack, which ends
// with this command, the run is ended as well, so that it does not go on by itself behind the
// next command; on a server of the user's it goes on.
func (a *app) interruptible(ctx context.Context, s *session, run, goOn string, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if !s.local() {
		fmt.Fprintf(a.err, "\ninterrupted; the run goes on at the server: ropewalk follow %s\n", run)
		return silentError{exitInterrupted}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	reason := "interrupted; go on with: " + goOn
	if err := s.temporal.TerminateWorkflow(end, run, "", reason); err != nil {
		slog.Warn("end the interrupted run", "run", run, "error", err)
	}
	fmt.Fprintf(a.err, "\ninterrupted; everything committed is kept. Go on with: %s\n", goOn)
	return silentError{exitInterrupted}
}

// workflowType names the workflow that a run is.
func (s *session) workflowType(ctx context.Context, run string) (string, error) {
	d, err := s.temporal.DescribeWorkflowExecution(ctx, run, "")
	if err != nil {
		return "", fmt.Errorf("look up run %s: %w", run, err)
	}
	return d.GetWorkflowExecutionInfo().GetType().GetName(), nil
}

// exists refuses a run that Temporal does not know.
func (s *session) exists(ctx context.Context, run string) error {
	_, err := s.temporal.DescribeWorkflowExecution(ctx, run, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return badInput("no run %q on the Temporal server; `ropewalk runs` lists them", run)
	}
	if err != nil {
		return fmt.Errorf("look up run %s: %w", run, err)
	}
	return nil
}
