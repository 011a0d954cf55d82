package main

import "github.com/spf13/cobra"

// sandboxCommand is the parent of what concerns code execution alone.
func (a *app) sandboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "execute model-written code in isolation",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.sandboxDoctorCommand())
	return cmd
}
