package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

func auditCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit [RUN]",
		Short: "list who started, steered, replayed, ended and deleted a run",
		Long: "audit lists what commands were asked to do to a run: when, by whom and with what. A run that a\n" +
			"schedule started names the schedule. A change of the recipe has two lines: what was asked, and amend,\n" +
			"which a worker notes when it has committed the change. Without RUN it lists what is about no single\n" +
			"run: schedules, quotas, upgrades, gc --delete and restore. The name is that of\n" +
			runs.ActorVariable + ", else that of the certificate that Temporal is shown, else that of the system's\n" +
			"user. Commands note it in the record before they act. What was done in Temporal's UI is in Temporal's\n" +
			"history.",
		Example: "  ropewalk audit quickstart-s1-20260102-030405\n  ropewalk audit",
		Args:    orNone(oneRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			return audit(cmd.Context(), con, cmp.Or(strings.Join(args, ""), schema.NoRun))
		},
	}
	con.jsonFlag(cmd, oneArray)
	return cmd
}

func audit(ctx context.Context, con *console, run string) error {
	s, err := con.connector().Read(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	deeds, err := analysis.New(s.Store).Deeds(ctx, run)
	if err != nil {
		return err
	}
	if len(deeds) == 0 && run != schema.NoRun {
		return badInput("nothing is noted about a run %q; `ropewalk runs` lists the runs", run)
	}
	return con.render(deeds, func(p *terminal.Printer) {
		p.Row("at", "actor", "host", "action", "with")
		for _, d := range deeds {
			p.Row(d.At, terminal.Line(d.Actor), terminal.Line(d.Host), d.Action, terminal.Line(d.Detail))
		}
	})
}
