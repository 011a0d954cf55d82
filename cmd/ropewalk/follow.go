package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/runs"
)

func followCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use:   "follow RUN",
		Short: "show a running run live, or how a run has ended",
		Long: "follow shows a run's steps until it ends, and its result. If the run is not running, follow\n" +
			"prints its status and starts nothing; `ropewalk resume RUN` continues it.",
		Example: "  ropewalk follow quickstart-s1-20260102-030405",
		Args:    oneRun,
		RunE:    func(cmd *cobra.Command, args []string) error { return followRun(cmd, con, args[0]) },
	}
}

func followRun(cmd *cobra.Command, con *console, run string) error {
	ctx := cmd.Context()
	known, err := lookUp(ctx, con, run)
	if err != nil {
		return err
	}
	if !known.OnServer {
		return printStanding(ctx, con, known.Run)
	}
	s, err := con.connector().Join(ctx, runs.NeedServers, run)
	if err != nil {
		return err
	}
	defer s.Close()
	kind, err := s.WorkflowType(ctx, run)
	if err != nil {
		return err
	}
	return following{console: con, cmd: cmd, session: s}.follow(run, kind)
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
