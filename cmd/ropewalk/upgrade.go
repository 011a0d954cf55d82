package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
)

func upgradeCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade DEPLOYMENT [BUILD]",
		Short: "move the runs of a worker deployment to another build",
		Long: "upgrade makes BUILD the current one of DEPLOYMENT: new runs begin on it, and open trainings go on\n" +
			"with it from their next step. Until then they stay on their present build, whose workers must keep\n" +
			"running. Without BUILD it lists the builds and the trainings on each. docs/operate.md",
		Example: "  ropewalk worker --deployment rl\n  ropewalk upgrade rl v0.4.0-1f0c2a9b7d3e\n  ropewalk upgrade rl",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly("DEPLOYMENT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return upgrade(cmd.Context(), con, args[0], strings.Join(args[1:], ""))
		},
	}
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func upgrade(ctx context.Context, con *console, deployment, build string) error {
	s, err := con.connector().Join(ctx, runs.NeedTemporal)
	if err != nil {
		return err
	}
	defer s.Close()
	if build == "" {
		return listBuilds(ctx, con, s, deployment)
	}
	moved, failed := s.Upgrade(ctx, deployment, build)
	result := map[string]any{"deployment": deployment, "build_id": build, "moved": append([]runs.Moved{}, moved...)}
	err = con.render(result, func(p *terminal.Printer) {
		for _, m := range moved {
			p.Line("run %s goes on with it from step %d, and is on %s until then", m.Run, m.Step, m.From)
		}
		if failed == nil {
			p.Line("%s is the current build of %s", build, deployment)
		}
	})
	return cmp.Or(err, failed)
}

func listBuilds(ctx context.Context, con *console, s *runs.Session, deployment string) error {
	builds, err := s.Builds(ctx, deployment)
	if err != nil {
		return err
	}
	result := map[string]any{"deployment": deployment, "builds": builds}
	return con.render(result, func(p *terminal.Printer) { printBuilds(p, builds) })
}

func printBuilds(p *terminal.Printer, builds []runs.Build) {
	p.Row("build", "state", "open trainings")
	for _, b := range builds {
		state := "not in use"
		switch {
		case b.Current:
			state = "current"
		case b.Draining || len(b.Runs) > 0:
			state = "draining: its workers must run"
		}
		p.Row(b.ID, state, cmp.Or(strings.Join(b.Runs, ", "), "none"))
	}
}
