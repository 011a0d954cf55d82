package main

import (
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
)

// generationFlag is the value of the flag --gen of commands that read the record.
type generationFlag struct{ analysis.Generation }

// Set implements pflag.Value.
func (f *generationFlag) Set(text string) (err error) {
	f.Generation, err = analysis.ParseGeneration(text)
	return err
}

// Type implements pflag.Value.
func (f *generationFlag) Type() string { return "heads|all|N" }

// add adds the flag to a reading command; its value before is the default.
func (f *generationFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var(f, "gen", "generations to read: those that the updates consumed (heads), also those of replays "+
		"(all), or number N of the stages that have it")
}
