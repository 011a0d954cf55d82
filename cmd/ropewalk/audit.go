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
		Long: "audit lists the commands that were given for a run: when, by whom, and with which settings. A run\n" +
			"that a schedule started names the schedule. A change of the recipe has two lines: the request, and\n" +
			"`amend`, which a worker adds when it has committed the change. Without RUN, audit lists commands that\n" +
			"concern no single run: schedules, quotas, upgrades, gc --delete and restore. The actor is the value of\n" +
			runs.ActorVariable + ", else the name in the client certificate for Temporal, else the system's user.\n" +
			"Commands write their line to the record before they act. Actions in Temporal's UI are only in\n" +
			"Temporal's history.",
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
