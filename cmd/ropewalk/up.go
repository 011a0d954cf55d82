package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/stack"
)

func (a *app) upCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "start the local stack and keep it up until interrupted",
		Long: "up starts Temporal with its web UI, an S3 server and a worker, supervises them and keeps them\n" +
			"up until Ctrl-C. Runs that were left open go on.",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.join(cmd.Context(), needAll)
			if err != nil {
				return err
			}
			defer s.close()
			a.printAddresses(s)
			return a.keepUp(cmd, s)
		},
	}
}

// keepUp waits for an interruption, which is how this is meant to end, or for the stack's loss.
func (a *app) keepUp(cmd *cobra.Command, s *session) error {
	fmt.Fprintln(a.err, "the stack stays up; Ctrl-C ends it")
	select {
	case <-cmd.Context().Done():
		fmt.Fprintln(a.err, "\nstopping")
		return nil
	case <-s.lease.Done():
		return s.lost()
	}
}

func (a *app) printAddresses(s *session) {
	address := s.lease.Addresses()
	if address.UI != "" {
		fmt.Fprintf(a.err, "Temporal UI  %s\n", address.UI)
	}
	fmt.Fprintf(a.err, "Temporal     %s, namespace %s\n", address.Temporal, address.Namespace)
	fmt.Fprintf(a.err, "record       %s, bucket %s%s\n", address.S3Endpoint, address.S3Bucket, folderNote(address))
}

func folderNote(address stack.Addresses) string {
	if address.S3Folder == "" {
		return ""
	}
	return " (plain files under " + address.S3Folder + ")"
}

func (a *app) superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Short:  "supervise the local stack (started by the commands that need it)",
		Hidden: true,
		Args:   exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := stack.OptionsFromEnv()
			if err != nil {
				return err
			}
			return stack.Supervise(cmd.Context(), options)
		},
	}
}
