package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
)

func runsCommand(con *console) *cobra.Command {
	asJSON, long := false, false
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
		RunE:    func(cmd *cobra.Command, _ []string) error { return listRuns(cmd.Context(), con, asJSON, long) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with a list of runs")
	cmd.Flags().BoolVarP(&long, "long", "l", false, "also print recipe, seed and time of creation")
	return cmd
}

func listRuns(ctx context.Context, con *console, asJSON, long bool) error {
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
	if asJSON {
		return con.printJSON(map[string]any{"runs": runs})
	}
	if len(runs) == 0 {
		_, err := fmt.Fprintf(con.out, "no runs in %s; `ropewalk run quickstart` makes one, and ROPEWALK_HOME names "+
			"another folder\n", s.Store)
		return err
	}
	return printRuns(con.out, runs, long)
}

// printRuns prints a table. The status is last, because the kind of a failure makes it long.
func printRuns(w io.Writer, runs []analysis.Run, long bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	more := ""
	if long {
		more = "recipe\tseed\tcreated\t"
	}
	fmt.Fprintf(t, "run\tsteps\tsuccess\t%sstatus\n", more)
	for _, r := range runs {
		if long {
			more = fmt.Sprintf("%s\t%d\t%s\t", r.Recipe, r.Seed, r.Created)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s%s\n", r.Run, r.Progress(), r.SuccessWords(), more, r.State())
	}
	return t.Flush()
}
