package sql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// createView shows a table's files with the columns run, step and gen in front. A column of the
// table that repeats one of them (updates' step) gives way. With words it is not a view but a table
// in memory, of the columns that are among the words: many queries of it then read the files once.
func createView(ctx context.Context, conn *sql.Conn, table schema.Table, empty string, shards []placed,
	words []string) error {
	mapping := mapping(table)
	if _, err := conn.ExecContext(ctx, "CREATE TABLE "+mapping+" (file VARCHAR, run VARCHAR, step INTEGER, gen "+
		"INTEGER)"); err != nil {
		return fmt.Errorf("create table %s: %w", mapping, err)
	}
	rows := make([][]driver.Value, len(shards))
	for i, s := range shards {
		rows[i] = []driver.Value{s.file, s.Run, step(s.Shard), int32(s.Gen)}
	}
	if err := fill(conn, mapping, rows); err != nil {
		return err
	}
	columns, err := ownColumns(ctx, conn, empty)
	if err != nil {
		return err
	}
	kind := "VIEW"
	if words != nil {
		kind = "TABLE"
		columns = slices.DeleteFunc(columns, func(c string) bool { return !slices.Contains(words, c) })
	}
	selected := []string{"m.run", "m.step", "m.gen"}
	for _, c := range columns {
		selected = append(selected, `t."`+c+`"`)
	}
	from := func(files []string) string {
		return fmt.Sprintf("SELECT %s FROM read_parquet(%s, filename = true, union_by_name = true) t JOIN %s m ON "+
			"t.filename = m.file",
			strings.Join(selected, ", "), list(append([]string{empty}, files...)), mapping)
	}
	files := filesOf(shards)
	at := len(files)
	if kind == "TABLE" {
		at = min(at, filesAtOnce)
	}
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("CREATE %s %s AS %s", kind, table, from(files[:at]))); err != nil {
		return fmt.Errorf("create %s %s: %w", strings.ToLower(kind), table, err)
	}
	for more := range slices.Chunk(files[at:], filesAtOnce) {
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s %s", table, from(more))); err != nil {
			return fmt.Errorf("fill table %s: %w", table, err)
		}
	}
	return nil
}

// mapping names the table that says which file is which shard.
func mapping(table schema.Table) string { return "shards_of_" + string(table) }

// filesOf are the shards' files, each once: shards of equal bytes share one, and the mapping gives its rows to each of
// them.
func filesOf(shards []placed) []string {
	seen := make(map[string]bool, len(shards))
	var out []string
	for _, s := range shards {
		if !seen[s.file] {
			seen[s.file] = true
			out = append(out, s.file)
		}
	}
	return out
}

// filesAtOnce is how many files a statement reads that fills a table. DuckDB holds a reader with the whole footer for
// each file of a statement, some 100 KiB, which is more than the columns of a small shard that are copied.
var filesAtOnce = 128 // a test has fewer

func step(s analysis.Shard) driver.Value {
	if s.Step == analysis.NoStep {
		return nil
	}
	return int32(s.Step)
}

// list is a list of SQL strings, each once.
func list(texts []string) string {
	texts = slices.Clone(texts)
	slices.Sort(texts)
	var out []string
	for _, t := range slices.Compact(texts) {
		out = append(out, quoted(t))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// ownColumns are those of the file that the mapping does not give.
func ownColumns(ctx context.Context, conn *sql.Conn, file string) (out []string, err error) {
	rows, err := conn.QueryContext(
		ctx, "SELECT column_name FROM (DESCRIBE SELECT * FROM read_parquet("+quoted(file)+")) WHERE column_name NOT "+
			"IN ('run', 'step', 'gen')")
	if err != nil {
		return nil, fmt.Errorf("read the columns of %s: %w", file, err)
	}
	defer closing(rows, &err)
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("read the columns of %s: %w", file, err)
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

// fill appends rows to a table.
func fill(conn *sql.Conn, table string, rows [][]driver.Value) error {
	return appendRows(conn, table, func(put func(row []driver.Value) error) error {
		for _, row := range rows {
			if err := put(row); err != nil {
				return fmt.Errorf("fill table %s: %w", table, err)
			}
		}
		return nil
	})
}

// appendRows appends the rows that fill puts to a table.
func appendRows(conn *sql.Conn, table string, fill func(put func(row []driver.Value) error) error) error {
	return conn.Raw(func(raw any) error {
		rows, err := duckdb.NewAppenderFromConn(raw.(driver.Conn), "", table)
		if err != nil {
			return fmt.Errorf("fill table %s: %w", table, err)
		}
		err = fill(func(row []driver.Value) error { return rows.AppendRow(row...) })
		if end := rows.Close(); err == nil && end != nil {
			return fmt.Errorf("fill table %s: %w", table, end)
		}
		return err
	})
}

// createRuns makes the table of the catalogue.
func createRuns(ctx context.Context, conn *sql.Conn, runs []analysis.Run) error {
	const columns = "run VARCHAR, recipe VARCHAR, seed UBIGINT, steps INTEGER, steps_done INTEGER, created " +
		"TIMESTAMP, status VARCHAR, success_before DOUBLE, success_after DOUBLE, steps_planned INTEGER, " +
		"failure_kind VARCHAR"
	if _, err := conn.ExecContext(ctx, "CREATE TABLE "+runsTable+" ("+columns+")"); err != nil {
		return fmt.Errorf("create table %s: %w", runsTable, err)
	}
	rows := make([][]driver.Value, len(runs))
	for i, r := range runs {
		rows[i] = []driver.Value{r.Run, r.Recipe, r.Seed, int32(r.Steps), int32(r.StepsDone), created(r), r.Status,
			optional(r.Before), optional(r.After), int32(r.Planned), orNull(r.FailureKind)}
	}
	return fill(conn, runsTable, rows)
}

const policyColumns = "run VARCHAR, step INTEGER, policy_version VARCHAR"

// createPolicies makes the table of the policies that runs have published.
func createPolicies(ctx context.Context, conn *sql.Conn, runs []*analysis.Visible) error {
	if _, err := conn.ExecContext(ctx, "CREATE TABLE "+policiesTable+" ("+policyColumns+")"); err != nil {
		return fmt.Errorf("create table %s: %w", policiesTable, err)
	}
	var rows [][]driver.Value
	for _, v := range runs {
		policies, err := v.Policies(ctx)
		if err != nil {
			return err
		}
		for _, p := range policies {
			rows = append(rows, []driver.Value{v.Run(), int32(p.Step), p.Digest})
		}
	}
	return fill(conn, policiesTable, rows)
}
