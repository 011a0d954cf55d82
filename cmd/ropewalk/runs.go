package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
)

func (a *app) runsCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "list the runs of the record, newest first",
		Long: "runs lists what the store's catalogue holds. A run is done when its last evaluation is\n" +
			"committed; an open one goes on, waits for a worker or has failed: `ropewalk resume RUN` goes on.",
		Example: "  ropewalk runs\n  ropewalk runs --json",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runs(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with a list of runs")
	return cmd
}

func (a *app) runs(ctx context.Context, asJSON bool) error {
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	runs, err := analysis.New(s.store).Runs(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]any{"runs": runs})
	}
	return a.printRuns(runs)
}

func (a *app) printRuns(runs []analysis.Run) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(a.out, "no runs yet; `ropewalk run quickstart` makes one")
		return err
	}
	width := len("run")
	for _, r := range runs {
		width = max(width, len(r.Run))
	}
	fmt.Fprintf(a.out, "%-*s  %-16s  %5s  %11s  %-6s  %-18s  %s\n", width, "run", "recipe", "seed", "steps", "status", "success", "created")
	for _, r := range runs {
		steps := fmt.Sprintf("%d/%d", r.StepsDone, max(r.Steps, r.StepsDone))
		if _, err := fmt.Fprintf(a.out, "%-*s  %-16s  %5d  %11s  %-6s  %-18s  %s\n", width, r.Run, r.Recipe, r.Seed, steps, r.Status, successWords(r), r.Created); err != nil {
			return err
		}
	}
	return nil
}

func successWords(r analysis.Run) string {
	switch {
	case r.Before == nil:
		return "–"
	case r.After == nil:
		return fmt.Sprintf("%5.1f%% → …", 100**r.Before)
	}
	return fmt.Sprintf("%5.1f%% → %5.1f%%", 100**r.Before, 100**r.After)
}
