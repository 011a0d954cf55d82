package main

import (
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
)

// generationFlag is the value of a reader's flag --gen.
type generationFlag struct{ analysis.Generation }

// Set implements pflag.Value.
func (f *generationFlag) Set(text string) (err error) {
	f.Generation, err = analysis.ParseGeneration(text)
	return err
}

// Type implements pflag.Value.
func (f *generationFlag) Type() string { return "heads|all|N" }

// add puts the flag on a reader; what it holds before is the default.
func (f *generationFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var(f, "gen", "read what the steps' updates consumed (heads), what replays made too (all), or generation N where a stage has one")
}
