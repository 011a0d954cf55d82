package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/stack"
)

func upCommand(con *console) *cobra.Command {
	reset, counts := false, metricsOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "start the local stack and keep it up until interrupted",
		Long: "up starts Temporal with its web UI, an S3 server and a worker, and supervises them until Ctrl-C.\n" +
			"Runs that were left open continue.",
		Example: "  ropewalk up\n  ropewalk up --reset-temporal   # after a damaged database; then ropewalk resume RUN",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reset {
				if err := con.connector().ResetTemporal(cmd.Context()); err != nil {
					return err
				}
			}
			s, err := con.connector().Join(cmd.Context(), runs.NeedAll, runs.EveryRun)
			if err != nil {
				return err
			}
			defer s.Close()
			printAddresses(con, s)
			stop, err := counts.monitor(cmd.Context(), con, "up", s)
			if err != nil {
				return err
			}
			defer stop()
			return keepUp(con, cmd, s)
		},
	}
	cmd.Flags().BoolVar(&reset, "reset-temporal", false,
		"first move the local Temporal's database aside; the record stays, and `ropewalk resume` continues runs")
	counts.add(cmd.Flags(), "")
	return cmd
}

// keepUp waits until the user interrupts the command or the stack is lost.
func keepUp(con *console, cmd *cobra.Command, s *runs.Session) error {
	fmt.Fprintln(con.err, "the stack stays up; Ctrl-C ends it")
	select {
	case <-cmd.Context().Done():
		fmt.Fprintln(con.err, "\nstopping")
		return nil
	case <-s.Lease.Done():
		return s.Lost()
	}
}

func printAddresses(con *console, s *runs.Session) {
	address := s.Lease.Addresses()
	if address.UI != "" {
		fmt.Fprintf(con.err, "Temporal UI  %s\nruns         %s\n", address.UI, runs.ViewOfRuns(address))
	}
	fmt.Fprintf(con.err, "Temporal     %s, namespace %s\n", address.Temporal, address.Namespace)
	fmt.Fprintf(con.err, "record       %s, bucket %s%s\n", address.S3Endpoint, address.S3Bucket,
		runs.FolderNote(address))
}

func superviseCommand(*console) *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Short:  "supervise a server of the local stack (started by the commands that need it)",
		Hidden: true,
		Args:   exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return stack.Supervise(cmd.Context())
		},
	}
}
