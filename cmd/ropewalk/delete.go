package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/gc"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

func deleteCommand(con *console) *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use:   "delete RUN",
		Short: "delete a run that is not open, with its record and checkpoints",
		Long: "delete removes a run that is done, failed, cancelled, interrupted or queued from the bucket. It\n" +
			"cannot be undone. delete keeps what other runs need: a policy that an evaluation measured, and warm\n" +
			"starts that other runs share. `ropewalk audit RUN` still lists who did what. End an open run first\n" +
			"with `ropewalk cancel`.",
		Example: "  ropewalk delete quickstart-s1-20260102-030405-k3v9qa --dry-run\n" +
			"  ropewalk delete quickstart-s1-20260102-030405-k3v9qa",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return deleteRun(cmd.Context(), con, args[0], dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be deleted, and delete nothing")
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func deleteRun(ctx context.Context, con *console, run string, dry bool) error {
	c := con.connector()
	known, unknown := lookUp(ctx, con, run)
	s, err := c.Join(ctx, runs.NeedTemporal, run)
	if err != nil {
		return err
	}
	defer s.Close()
	if unknown != nil { // a deletion that was interrupted has left data alone
		if left, err := s.Store.List(ctx, schema.RunPrefix(run)); err != nil || len(left) == 0 {
			return unknown
		}
	}
	last, err := runs.LastOf(ctx, s.Temporal, run)
	if err != nil {
		return err
	}
	if last.Open && known.OnServer {
		return badInput("run %s is %s: end it first with `ropewalk cancel %s`", run, known.Run.State(), run)
	}
	all, err := c.Observe(ctx, s)
	if err != nil {
		return err
	}
	o := gc.Removal{Delete: !dry, WarmStarts: all.Server == status.Asked}
	for name, w := range all.Workflows {
		o.WarmStarts = o.WarmStarts && (name == run || w.Ended != status.StillOpen)
	}
	if !dry {
		if err := s.Note(ctx, run, schema.DeedDelete); err != nil {
			return err
		}
		if err := endForgotten(ctx, s, run, last.Open); err != nil {
			return err
		}
	}
	out, err := gc.DeleteRun(ctx, s.Store, run, o)
	if err != nil {
		return err
	}
	result := struct {
		Run string `json:"run_id"`
		gc.Removed
	}{run, out}
	return con.render(result, func(p *terminal.Printer) { p.Line("run %s: %s", run, removed(out, dry)) })
}

// endForgotten ends the workflow of a run whose command was killed, which the next worker would take up.
func endForgotten(ctx context.Context, s *runs.Session, run string, open bool) error {
	if open {
		if err := s.End(ctx, run, status.Cancelled, "deleted by `ropewalk delete`"); err != nil {
			return fmt.Errorf("end run %s: %w", run, err)
		}
	}
	if !s.Local() {
		return nil
	}
	return stack.Forget(run)
}

// removed says what a deletion did.
func removed(out gc.Removed, dry bool) string {
	did := "deleted"
	if dry {
		did = "to delete"
	}
	words := fmt.Sprintf("%d objects of %d bytes %s", out.Objects, out.Bytes, did)
	if out.WarmStarts > 0 {
		words += fmt.Sprintf(", warm starts that no other run begins with among them (%d)", out.WarmStarts)
	}
	if out.Kept > 0 {
		words += fmt.Sprintf("; %d stay, because %s was made from them", out.Kept, strings.Join(out.For, ", "))
	}
	return words
}
