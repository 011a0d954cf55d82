package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/runs"
)

func upgradeCommand(con *console) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "upgrade DEPLOYMENT [BUILD]",
		Short: "move the runs of a worker deployment to another build",
		Long: "upgrade makes BUILD the current one of DEPLOYMENT: new runs begin on it, and open trainings go on\n" +
			"with it from their next step. Until then they stay on the build that they are on, whose workers must\n" +
			"run. Without BUILD it lists the builds and the trainings on each. docs/operate.md",
		Example: "  ropewalk worker --deployment rl\n  ropewalk upgrade rl v0.4.0-1f0c2a9b7d3e\n  ropewalk upgrade rl",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly("DEPLOYMENT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return upgrade(cmd.Context(), con, args[0], strings.Join(args[1:], ""), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func upgrade(ctx context.Context, con *console, deployment, build string, asJSON bool) error {
	s, err := con.connector().Join(ctx, runs.NeedTemporal)
	if err != nil {
		return err
	}
	defer s.Close()
	if build == "" {
		return listBuilds(ctx, con, s, deployment, asJSON)
	}
	moved, failed := s.Upgrade(ctx, deployment, build)
	if asJSON {
		if moved == nil {
			moved = []runs.Moved{}
		}
		if err := con.printJSON(map[string]any{"deployment": deployment, "build_id": build,
			"moved": moved}); err != nil {
			return err
		}
		return failed
	}
	for _, m := range moved {
		fmt.Fprintf(con.out, "run %s goes on with it from step %d, and is on %s until then\n", m.Run, m.Step, m.From)
	}
	if failed == nil {
		fmt.Fprintf(con.out, "%s is the current build of %s\n", build, deployment)
	}
	return failed
}

func listBuilds(ctx context.Context, con *console, s *runs.Session, deployment string, asJSON bool) error {
	builds, err := s.Builds(ctx, deployment)
	if err != nil {
		return err
	}
	if asJSON {
		return con.printJSON(map[string]any{"deployment": deployment, "builds": builds})
	}
	return printBuilds(con.out, builds)
}

func printBuilds(out io.Writer, builds []runs.Build) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "build\tstate\topen trainings")
	for _, b := range builds {
		state := "not in use"
		switch {
		case b.Current:
			state = "current"
		case b.Draining || len(b.Runs) > 0:
			state = "draining: its workers must run"
		}
		open := strings.Join(b.Runs, ", ")
		if open == "" {
			open = "none"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", b.ID, state, open)
	}
	return w.Flush()
}
