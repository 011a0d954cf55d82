package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/compaction"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
)

func compactCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compact RUN",
		Short: "merge the small files of a run's finished steps, so that it is read faster",
		Long: "For each finished step, compact writes one file per table with the rows of all the step's shards.\n" +
			"Readers (sql, show, report, export, the Python package) then open that file instead of the shards.\n" +
			"The shards and their manifests stay: heads point to them, stages and replays read them, and verify\n" +
			"compares the merged files with them. compact skips steps that are already compacted, and works on\n" +
			"running runs. The recipe's record.compact does the same after each step.",
		Example: "  ropewalk compact quickstart-s1-20260102-030405",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return compactRun(cmd.Context(), con, args[0])
		},
	}
	con.jsonFlag(cmd, oneObject)
	return cmd
}

// compactedRun is what compact prints as JSON.
type compactedRun struct {
	Run     string `json:"run"`
	Steps   int    `json:"steps"` // compacted now
	Earlier int    `json:"earlier"`
	Tables  int    `json:"tables"`
	Shards  int    `json:"shards"`
	Rows    int    `json:"rows"`
}

func compactRun(ctx context.Context, con *console, run string) error {
	if _, err := lookUp(ctx, con, run); err != nil { // before a server starts
		return err
	}
	s, err := con.connector().Join(ctx, runs.NeedStore)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := analysis.New(s.Store).Run(ctx, run); err != nil {
		return runs.Missing(err)
	}
	code, err := codeDigest()
	if err != nil {
		return err
	}
	out := compactedRun{Run: run}
	err = compaction.Run(ctx, commit.New(s.Store), run, code, func(_ int, r compaction.Result) {
		if r.Adopted {
			out.Earlier++
			return
		}
		out.Steps, out.Tables, out.Shards, out.Rows = out.Steps+1, out.Tables+r.Tables, out.Shards+r.Shards,
			out.Rows+r.Rows
	})
	if err != nil {
		return err
	}
	return con.render(out, func(p *terminal.Printer) {
		p.Line("run %s: %d steps compacted, %d before; %d files for %d shards, %d rows", run, out.Steps, out.Earlier,
			out.Tables, out.Shards, out.Rows)
	})
}
