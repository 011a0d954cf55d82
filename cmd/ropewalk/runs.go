package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/terminal"
)

func runsCommand(con *console) *cobra.Command {
	long := false
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "list the runs of the record, newest first",
		Long: "runs lists the store's catalogue with each run's progress and status:\n\n" +
			"  queued         requested; nothing is committed\n" +
			"  running        its workflow is open\n" +
			"  paused         waits between two steps for `ropewalk unpause`\n" +
			"  parked         waits for a decision because a stage has failed: `ropewalk unpark`\n" +
			"  interrupted    its command or its servers have ended: `ropewalk resume` goes on\n" +
			"  stopped early  finished by `ropewalk stop` or `set --steps`\n" +
			"  cancelled      ended by `ropewalk cancel`\n" +
			"  failed         its workflow has failed\n" +
			"  done           its last evaluation is committed\n" +
			"  open           not finished, and no server was asked\n\n" +
			"Parked and failed runs show the kind of the failure. runs asks the Temporal server if one runs, and\n" +
			"starts none.",
		Example: "  ropewalk runs\n  ropewalk runs --long\n  ropewalk runs --json",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return listRuns(cmd.Context(), con, long) },
	}
	con.jsonFlag(cmd, oneObject+" with a list of runs")
	cmd.Flags().BoolVarP(&long, "long", "l", false, "also print recipe, seed and time of creation")
	return cmd
}

func listRuns(ctx context.Context, con *console, long bool) error {
	c := con.connector()
	s, err := c.Read(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	observed, err := c.Observe(ctx, s)
	if err != nil {
		return err
	}
	runs, err := analysis.New(s.Store).WithServer(observed).Runs(ctx)
	if err != nil {
		return err
	}
	return con.render(map[string]any{"runs": runs}, func(p *terminal.Printer) {
		if len(runs) == 0 {
			p.Line("no runs in %s; `ropewalk run quickstart` makes one, and ROPEWALK_HOME names another folder",
				s.Store)
			return
		}
		printRuns(p, runs, long)
	})
}

// printRuns prints a table. The status is last, because the kind of a failure makes it long.
func printRuns(p *terminal.Printer, runs []analysis.Run, long bool) {
	row := func(cells []any, more []any, state any) {
		if long {
			cells = append(cells, more...)
		}
		p.Row(append(cells, state)...)
	}
	row([]any{"run", "steps", "success"}, []any{"recipe", "seed", "created"}, "status")
	for _, r := range runs {
		row([]any{r.Run, r.Progress(), r.SuccessWords()}, []any{r.Recipe, r.Seed, r.Created}, r.State())
	}
}
