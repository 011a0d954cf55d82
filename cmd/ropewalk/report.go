package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/internal/runs"
)

func reportCommand(con *console) *cobra.Command {
	file, gen := "", generationFlag{}
	cmd := &cobra.Command{
		Use:   "report RUN [RUN…]",
		Short: "write the report of a run, or of several in the same figures, as one HTML page",
		Long: "report shows how a run went: learning curves with bootstrap intervals, success by level, the\n" +
			"selection of trajectories, the update, the times, and a few trajectories turn by turn with their\n" +
			"tokens coloured by log-probability, entropy or advantage. Every figure shows its SQL. With --gen all\n" +
			"the page compares the generations of replayed steps. A run with missing heads is refused.\n\n" +
			"With several runs the page overlays their curves, one colour per run. It lists the differences in\n" +
			"recipes, programs and held-out success, and the first row in which the records differ.",
		Example: "  ropewalk report quickstart-s1-20260102-030405 -o report.html\n" +
			"  ropewalk report quickstart-s1-20260102-030405 quickstart-s2-20260102-030405 -o both.html",
		Args: someRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && cmd.Flags().Changed("gen") {
				return badInput("--gen: is for one run, and %d are named", len(args))
			}
			return writeReport(cmd.Context(), con, args, cmp.Or(file, strings.Join(args, "-")+".html"), gen)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `FILE` (default RUN.html, or A-B.html)")
	gen.add(cmd)
	return cmd
}

// writeReport writes the page of one run, or about several.
func writeReport(ctx context.Context, con *console, names []string, file string, gen generationFlag) error {
	target, err := con.target(file, strings.Join(names, "-")+".html")
	if err != nil {
		return err
	}
	defer target.discard() // does nothing once the file is kept
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	record = record.WithGaps(nil).WithGeneration(gen.Generation) // a page without some steps would not show it
	if len(names) > 1 {
		page, err := report.GatherComparison(ctx, record, names)
		if err != nil {
			return runs.Missing(err)
		}
		return writePage(con, target, page.WriteHTML)
	}
	observed, err := con.connector().Observe(ctx, s, names...)
	if err != nil {
		return err
	}
	page, err := report.Gather(ctx, record.WithServer(observed), names[0], false)
	if err != nil {
		return runs.Missing(err)
	}
	return writePage(con, target, page.WriteHTML)
}

// writePage writes a page to its target and says where it is.
func writePage(con *console, to *target, write func(w io.Writer) error) error {
	if err := write(to); err != nil {
		return err
	}
	if err := to.keep(); err != nil {
		return err
	}
	fmt.Fprintf(con.err, "wrote %s\n", to.name)
	return nil
}
