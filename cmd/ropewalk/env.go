package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/stack"
)

func envCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "print the environment variables with which other programs use the running local stack",
		Long: "env prints a line KEY=VALUE for each variable that a worker started by hand, Temporal's own command\n" +
			"or an S3 client needs to use the local stack that runs here. The S3 server's secret is among them.",
		Example: "  env $(ropewalk env) ropewalk worker --queues sandbox\n  env $(ropewalk env) temporal workflow list",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			addresses, err := stack.Running(stack.Options{})
			if errors.Is(err, stack.ErrNotRunning) {
				return badInput("%w; `ropewalk up` starts one", err)
			}
			if err != nil {
				return err
			}
			for _, variable := range addresses.Env() {
				fmt.Fprintln(con.out, variable)
			}
			return nil
		},
	}
}
