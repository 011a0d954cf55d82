package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/runs"
)

type sqlOptions struct {
	runs []string
	gen  generationFlag
	csv  bool
}

func sqlCommand(con *console) *cobra.Command {
	o := sqlOptions{}
	cmd := &cobra.Command{
		Use:   "sql QUERY",
		Short: "query the record in SQL",
		Long: "sql runs DuckDB over the committed shards of all runs, or of those that --run names. All\n" +
			"tables except runs begin with the columns run, step and gen:\n\n" + wrapped(sql.Tables()) + "\n\n" +
			"A step's rows are visible once the step is done, in the generations that its update consumed;\n" +
			"--gen all adds those of replays, which differ in the column gen. If a run has missing heads, the\n" +
			"other steps are read, with a warning on standard error. Fetched shards stay in .ropewalk/cache,\n" +
			"which is trimmed to 4 GiB and may be deleted.",
		Example: "  ropewalk sql \"select run, step, avg(reward) from rewards group by all order by all\"\n" +
			"  ropewalk sql --run quickstart-s1-20260102-030405 \"select status, count(*) from tool_calls group by " +
			"1\"\n" +
			"  ropewalk sql --csv \"select * from updates\" > updates.csv",
		Args: exactly("QUERY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.csv && con.asJSON {
				return badInput("--csv and --json: choose one")
			}
			return querySQL(cmd.Context(), con, o, args[0])
		},
	}
	cmd.Flags().StringArrayVar(&o.runs, "run", nil, "read only this `RUN` (repeatable; default: all)")
	o.gen.add(cmd)
	cmd.Flags().BoolVar(&o.csv, "csv", false, "print CSV with a header")
	con.jsonFlag(cmd, oneObject+` {"columns":[…],"rows":[[…]]}`)
	return cmd
}

func querySQL(ctx context.Context, con *console, o sqlOptions, query string) error {
	c := con.connector()
	s, err := c.Read(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var observed analysis.Observed
	if strings.Contains(strings.ToLower(query), "runs") { // the table with each run's status
		if observed, err = c.Observe(ctx, s, o.runs...); err != nil {
			return err
		}
	}
	record, err := openRecord(con, s)
	if err != nil {
		return err
	}
	result, err := sql.Query(ctx, record.WithGeneration(o.gen.Generation).WithServer(observed), query, o.runs...)
	if errors.Is(err, sql.ErrQuery) {
		return badinput.Of(err)
	}
	if err != nil {
		return runs.Missing(err)
	}
	if o.csv {
		return result.WriteCSV(con.data)
	}
	return con.show(result, result.WriteTable)
}

// wrapped joins names with commas in lines for a command's help.
func wrapped(names []string) string {
	var lines []string
	line := " "
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		if len(line)+1+len(name) > 96 {
			lines, line = append(lines, line), " "
		}
		line += " " + name
	}
	return strings.Join(append(lines, line), "\n")
}

// cacheFolder is where fetched shards are kept, next to the local stack's state.
func cacheFolder() string {
	return filepath.Join(stateFolder(), "cache")
}
