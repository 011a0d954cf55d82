package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/gc"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

func gcCommand(con *console) *cobra.Command {
	o := gc.Options{}
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "list or delete what superseded attempts have left in the bucket",
		Long: "gc lists orphans: data shards and checkpoint files that no manifest names, and uploads that were not\n" +
			"completed. With --delete it deletes them. It never deletes what a manifest names. It can run while\n" +
			"workers run, because it keeps objects younger than --min-age, and objects that an uncommitted stage\n" +
			"may still name. The minimum age must exceed the longest time limit of a stage: " +
			hours(workflows.LongestStage()) + ", or that of\n" +
			"`unpark --timeout`. --unfinished also collects old orphans of unfinished steps, for example of\n" +
			"abandoned runs. While workers are connected, --delete refuses --unfinished and a lower --min-age.",
		Example: "  ropewalk gc\n  ropewalk gc --delete\n  ropewalk gc --delete --min-age 48h --json",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.MinAge < 0 {
				return badInput("--min-age: must be ≥ 0, got %s", o.MinAge)
			}
			return collectGarbage(cmd.Context(), con, o)
		},
	}
	cmd.Flags().BoolVar(&o.Delete, "delete", false, "delete the orphans (default: only list them)")
	cmd.Flags().DurationVar(&o.MinAge, "min-age", 24*time.Hour, "keep objects that were written within this `DURATION`")
	cmd.Flags().BoolVar(&o.Unfinished, "unfinished", false, "also collect orphans of unfinished steps; use "+
		"it only while no worker runs")
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func collectGarbage(ctx context.Context, con *console, o gc.Options) error {
	need, alone := runs.NeedStore, o.Delete && (o.MinAge < workflows.LongestStage() || o.Unfinished)
	if alone {
		need = runs.NeedTemporal // it knows the workers
	}
	s, err := con.connector().Join(ctx, need) // a server knows its uploads, a folder does not
	if err != nil {
		return err
	}
	defer s.Close()
	if alone {
		if err := withoutWorkers(ctx, s, o); err != nil {
			return err
		}
	}
	if o.Delete {
		if err := s.Note(ctx, schema.NoRun, "gc", map[string]any{"min_age": o.MinAge.String(),
			"unfinished": o.Unfinished}); err != nil {
			return err
		}
	}
	found, err := gc.Collect(ctx, s.Store, o)
	if err != nil {
		if n := found.Deleted(); n > 0 {
			return fmt.Errorf("%w; %d objects were deleted before", err, n)
		}
		return err
	}
	return con.render(found, func(p *terminal.Printer) {
		for _, item := range found.Collect {
			printItem(p, "orphan", item)
		}
		for _, item := range found.Keep {
			printItem(p, "kept", item)
		}
		p.Line("%s; %d kept, %d manifests read, %d objects that are not part of the record",
			collected(found, o.Delete), len(found.Keep), found.Manifests, found.Unknown)
	})
}

// withoutWorkers refuses what could delete objects that a worker is about to commit.
func withoutWorkers(ctx context.Context, s *runs.Session, o gc.Options) error {
	there, err := s.Workers(ctx)
	if err != nil || len(there) == 0 {
		return err
	}
	what := "--unfinished: must be left out"
	if least := workflows.LongestStage(); o.MinAge < least {
		what = fmt.Sprintf("--min-age: must be at least %s, the longest time limit of a stage,", hours(least))
	}
	return badInput("%s while workers are there, which may still commit what gc would delete; stop them first: %s",
		what, strings.Join(there, ", "))
}

// hours writes a duration as the flag takes it, such as 6h.
func hours(d time.Duration) string { return fmt.Sprintf("%gh", d.Hours()) }

func printItem(p *terminal.Printer, kind string, item gc.Item) {
	key := item.Key
	if item.Upload != "" {
		key += " (upload " + item.Upload + ")"
	}
	p.Line("%-6s  %12d bytes  %s  %s: %s", kind, item.Bytes, item.Modified.UTC().Format(time.RFC3339),
		key, item.Why)
}

func collected(r gc.Result, deleted bool) string {
	if deleted {
		return fmt.Sprintf("%d orphans of %d bytes deleted", r.Deleted(), r.Bytes())
	}
	return fmt.Sprintf("%d orphans of %d bytes; --delete deletes them", len(r.Collect), r.Bytes())
}
