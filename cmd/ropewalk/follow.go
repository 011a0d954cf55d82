package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/importing"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/workflows"
)

func followCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use:   "follow RUN",
		Short: "show a running run live, or how a run has ended",
		Long: "follow shows a run's steps until it ends, and its result. Of a run that is not running it prints the\n" +
			"status and starts nothing: `ropewalk resume RUN` goes on with it.",
		Example: "  ropewalk follow quickstart-s1-20260102-030405",
		Args:    oneRun,
		RunE:    func(cmd *cobra.Command, args []string) error { return followRun(cmd.Context(), con, args[0]) },
	}
}

func followRun(ctx context.Context, con *console, run string) error {
	c := con.connector()
	known, err := lookUp(ctx, con, run)
	if err != nil {
		return err
	}
	if !known.OnServer {
		return printStanding(ctx, con, known.Run)
	}
	s, err := c.Join(ctx, runs.NeedServers, run)
	if err != nil {
		return err
	}
	defer s.Close()
	kind, err := s.WorkflowType(ctx, run)
	if err != nil {
		return err
	}
	if kind == workflows.ReprocessRunName {
		result, err := s.AwaitImport(ctx, run, con.resident)
		if err != nil {
			return notFollowed(ctx, con, err)
		}
		report, err := importing.NewReport(ctx, s.Store, result, 0)
		if err != nil {
			return err
		}
		report.WriteText(con.err, result)
		return nil
	}
	if kind == workflows.EvaluateRunName {
		return finishEvaluation(ctx, con, s, run, false)
	}
	result, err := s.Follow(ctx, run, runs.NewProgressView(con.err, con.terminal), con.resident)
	if err != nil {
		return notFollowed(ctx, con, err)
	}
	report, err := s.Report(ctx, run, result, 0)
	if err != nil {
		return err
	}
	report.WriteText(con.err, shownAddresses(s, s.Lease.Stays()))
	return nil
}

// notFollowed says why following has ended without a result.
func notFollowed(ctx context.Context, con *console, err error) error {
	var parked runs.ParkedError
	if errors.As(err, &parked) {
		return reportParked(con, parked, false)
	}
	if ctx.Err() != nil {
		return silentError{exitInterrupted} // the run goes on: this command only watched it
	}
	return runs.Failure(err)
}

// lookUp finds a run in the record and on the server that runs now. It starts nothing.
func lookUp(ctx context.Context, con *console, run string) (runs.Known, error) {
	c := con.connector()
	s, err := c.Read(ctx)
	if err != nil {
		return runs.Known{}, err
	}
	defer s.Close()
	return c.Known(ctx, s, run)
}

// printStanding prints how a run is that no server takes further: its result, or its status and the command that goes
// on with it.
func printStanding(ctx context.Context, con *console, run analysis.Run) error {
	state := run.State()
	if state.State == status.Queued {
		return badInput("run %s is queued: it has committed nothing; %s starts it", run.Run, state.Next(run.Run))
	}
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	overview, err := record.Overview(ctx, run.Run)
	if err != nil {
		return runs.Missing(err)
	}
	overview.Run = run
	if err := overview.Write(con.out); err != nil {
		return err
	}
	switch {
	case state.State.Finished():
		return nil
	case state.State == status.Parked:
		return silentError{exitParked}
	}
	return silentError{exitFailed}
}

// orInterrupted returns err, unless the command was interrupted: it then prints how to go on. On the local stack, which
// stops with this command, it also ends the run, so that the run does not go on by itself under the next command. On
// the user's own server the run goes on.
func orInterrupted(ctx context.Context, con *console, s *runs.Session, run, continueWith string, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if !s.Local() {
		fmt.Fprintf(con.err, "\ninterrupted; the run goes on at the server: ropewalk follow %s\n", run)
		return silentError{exitInterrupted}
	}
	reason := "its command was interrupted; go on with: " + continueWith
	if err := s.End(ctx, run, status.Interrupted, reason); err != nil {
		slog.Warn("end the interrupted run", "run", run, "error", err)
	}
	fmt.Fprintf(con.err, "\ninterrupted; everything committed is kept. Go on with: %s\n", continueWith)
	return silentError{exitInterrupted}
}
