package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/importing"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/workflows"
)

// following is a command that follows a training, an evaluation or an import to its end.
type following struct {
	*console
	cmd     *cobra.Command
	session *runs.Session
	began   time.Time // when the command began; zero if it only watches a run
	again   string    // the command that goes on with the run; "" is resume
}

// start starts a run and follows it.
func (f following) start(ask runs.Start) error {
	ctx, run := f.cmd.Context(), ask.Request.Run
	b, err := f.session.Begin(ctx, ask)
	if err != nil {
		return f.interrupted(run, err)
	}
	fmt.Fprintf(f.err, "run          %s\n", run)
	if b.Joined {
		fmt.Fprintf(f.err, "run %s is already open under the same recipe; this command follows it\n", run)
	}
	if b.Imported {
		fmt.Fprintf(f.err, "this file is already imported as run %s; its figures:\n", run)
	}
	return f.session.DropRefused(ctx, run, f.follow(run, ask.Request.Workflow))
}

// follow follows a run until it ends or parks, and prints its result.
func (f following) follow(run, workflow string) (err error) {
	ctx, s, live := f.cmd.Context(), f.session, runs.NewProgressView(f.err, f.terminal)
	var result func() error
	switch workflow {
	case workflows.ReprocessRunName:
		var r workflows.ReprocessResult
		r, err = s.AwaitImport(ctx, run, f.resident)
		result = func() error { return f.imported(r) }
	case workflows.EvaluateRunName:
		_, err = s.FollowEvaluation(ctx, run, live, f.resident)
		result = func() error { return printEvaluation(ctx, f.console, s, run) }
	default:
		var r workflows.TrainRunResult
		r, err = s.Follow(ctx, run, live, f.resident)
		result = func() error { return f.trained(run, r) }
	}
	var parked runs.ParkedError
	switch {
	case err == nil:
		return result()
	case !errors.As(err, &parked):
		return f.interrupted(run, runs.Failure(err))
	}
	runs.DescribeParked(f.err, parked.Progress)
	if f.asJSON {
		if err := f.printJSON(parked.Report()); err != nil {
			return err
		}
	}
	return silentError{exitParked}
}

// took is how long the command has followed the run from its start; 0 if it only watches.
func (f following) took() time.Duration {
	if f.began.IsZero() {
		return 0
	}
	return time.Since(f.began)
}

// imported prints the report of an import.
func (f following) imported(r workflows.ReprocessResult) error {
	report, err := importing.NewReport(f.cmd.Context(), f.session.Store, r, f.took())
	if err != nil {
		return err
	}
	report.WriteText(f.err, r)
	if f.asJSON {
		return f.printJSON(report)
	}
	return nil
}

// trained prints the report of a training. At a terminal, the stack then stays up for its pages.
func (f following) trained(run string, r workflows.TrainRunResult) error {
	report, err := f.session.Report(f.cmd.Context(), run, r, f.took())
	if err != nil {
		return err
	}
	held := f.session.Lease.Stays()
	waits := !held && f.resident && !f.asJSON && !f.began.IsZero()
	addresses := f.session.Lease.Addresses()
	if !held && !waits {
		addresses.UI = "" // it ends with the command
	}
	report.WriteText(f.err, addresses)
	switch {
	case f.asJSON:
		return f.printJSON(report)
	case waits:
		return keepUp(f.console, f.cmd, f.session)
	}
	return nil
}

// interrupted returns err, unless the command was interrupted: it then prints how to go on. On the local stack, which
// stops with this command, it also ends the run, so that the run does not go on by itself under the next command. On
// the user's own server the run goes on, and so does a run that the command only watched.
func (f following) interrupted(run string, err error) error {
	ctx := f.cmd.Context()
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case f.began.IsZero():
		return silentError{exitInterrupted}
	case !f.session.Local():
		fmt.Fprintf(f.err, "\ninterrupted; the run goes on at the server: ropewalk follow %s\n", run)
		return silentError{exitInterrupted}
	}
	again := cmp.Or(f.again, "ropewalk resume "+run)
	reason := "its command was interrupted; go on with: " + again
	if err := f.session.End(ctx, run, status.Interrupted, reason); err != nil {
		slog.Warn("end the interrupted run", "run", run, "error", err)
	}
	fmt.Fprintf(f.err, "\ninterrupted; everything committed is kept. Go on with: %s\n", again)
	return silentError{exitInterrupted}
}
