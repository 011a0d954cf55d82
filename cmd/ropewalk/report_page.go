package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis/report"
)

func (a *app) reportCommand() *cobra.Command {
	file, gen := "", generationFlag{}
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "write a run's report as one HTML page that works offline",
		Long: "report draws how a run went: learning curves with bootstrap intervals, success by level, the\n" +
			"selection of trajectories, the update, the times, and a few trajectories turn by turn with their\n" +
			"tokens coloured by log-probability, entropy or advantage. Every figure shows the SQL that made it.\n" +
			"With --gen all the generations of replayed steps are set side by side.",
		Example: "  ropewalk report quickstart-s1-20260102-030405 -o report.html",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reportPage(cmd.Context(), args[0], cmp.Or(file, args[0]+".html"), gen)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `FILE` (default RUN.html)")
	gen.add(cmd)
	return cmd
}

func (a *app) reportPage(ctx context.Context, run, file string, gen generationFlag) error {
	target, err := a.target(file, run+".html")
	if err != nil {
		return err
	}
	defer target.discard() // once it is kept there is nothing to discard
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	page, err := report.Gather(ctx, report.Options{Store: s.store, Cache: cacheFolder(), Run: run, Gen: gen.Generation})
	if err != nil {
		return missing(err)
	}
	if err := page.WriteHTML(target); err != nil {
		return err
	}
	if err := target.keep(); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "wrote %s\n", target.name)
	return nil
}
