package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
)

type sqlOptions struct {
	runs      []string
	gen       generationFlag
	csv, json bool
}

func (a *app) sqlCommand() *cobra.Command {
	o := sqlOptions{}
	cmd := &cobra.Command{
		Use:   "sql QUERY",
		Short: "ask the record in SQL",
		Long: "sql runs DuckDB over the committed shards of all runs, or of those that --run names. There is a\n" +
			"view for each table: prompts, turns, tool_calls, trajectories, gradings, rewards, selection, updates,\n" +
			"evaluations, timings, each with the columns run, step and gen in front; and the table runs. A\n" +
			"step's rows are seen once the step is done, in the generations that its update consumed; --gen all\n" +
			"shows those of replays as well, which the column gen tells apart. Fetched shards stay in .ropewalk/cache, which is\n" +
			"trimmed to 4 GiB and may be deleted.",
		Example: "  ropewalk sql \"select step, avg(reward) from rewards group by 1 order by 1\"\n" +
			"  ropewalk sql --run quickstart-s1-20260102-030405 \"select status, count(*) from tool_calls group by 1\"\n" +
			"  ropewalk sql --csv \"select * from updates\" > updates.csv",
		Args: exactly("QUERY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.csv && o.json {
				return badInput("--csv and --json: choose one")
			}
			return a.sql(cmd.Context(), o, args[0])
		},
	}
	cmd.Flags().StringArrayVar(&o.runs, "run", nil, "look at this `RUN` only (repeatable; default all)")
	o.gen.add(cmd)
	cmd.Flags().BoolVar(&o.csv, "csv", false, "print CSV with a header")
	cmd.Flags().BoolVar(&o.json, "json", false, `print one JSON object {"columns":[…],"rows":[[…]]}`)
	return cmd
}

func (a *app) sql(ctx context.Context, o sqlOptions, query string) error {
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	result, err := sql.Query(ctx, sql.Options{Store: s.store, Cache: cacheFolder(), Runs: o.runs, Gen: o.gen.Generation, Query: query})
	if errors.Is(err, sql.ErrQuery) {
		return badInputError{err}
	}
	if err != nil {
		return missing(err)
	}
	switch {
	case o.json:
		return a.printJSON(result)
	case o.csv:
		return result.WriteCSV(a.out)
	}
	return result.WriteTable(a.out)
}

// cacheFolder is where fetched shards are kept: beside the local stack's state.
func cacheFolder() string {
	return filepath.Join(cmp.Or(os.Getenv("ROPEWALK_HOME"), ".ropewalk"), "cache")
}

// missing makes what the record does not hold the caller's to mend.
func missing(err error) error {
	if errors.Is(err, analysis.ErrNoRun) {
		return badInput("%w; `ropewalk runs` lists them", err)
	}
	if errors.Is(err, analysis.ErrNoStep) || errors.Is(err, analysis.ErrNoGroup) || errors.Is(err, analysis.ErrNoGeneration) {
		return badInputError{err}
	}
	return err
}
