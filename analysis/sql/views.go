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
// table that repeats one of them (updates' step) gives way.
func createView(ctx context.Context, conn *sql.Conn, table schema.Table, empty string, shards []placed) error {
	mapping := "shards_of_" + string(table)
	if _, err := conn.ExecContext(ctx, "CREATE TABLE "+mapping+" (file VARCHAR, run VARCHAR, step INTEGER, gen INTEGER)"); err != nil {
		return fmt.Errorf("create table %s: %w", mapping, err)
	}
	files := []string{empty}
	rows := make([][]driver.Value, len(shards))
	for i, s := range shards {
		files = append(files, s.file)
		rows[i] = []driver.Value{s.file, s.Run, step(s.Shard), int32(s.Gen)}
	}
	if err := fill(conn, mapping, rows); err != nil {
		return err
	}
	repeated, err := repeatedColumns(ctx, conn, empty)
	if err != nil {
		return err
	}
	view := fmt.Sprintf("CREATE VIEW %s AS SELECT m.run, m.step, m.gen, t.* EXCLUDE (%s) FROM read_parquet(%s, filename = true, union_by_name = true) t JOIN %s m ON t.filename = m.file",
		table, strings.Join(append([]string{"filename"}, repeated...), ", "), list(files), mapping)
	if _, err := conn.ExecContext(ctx, view); err != nil {
		return fmt.Errorf("create view %s: %w", table, err)
	}
	return nil
}

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

// repeatedColumns are those of the file that the mapping gives as well.
func repeatedColumns(ctx context.Context, conn *sql.Conn, file string) (out []string, err error) {
	rows, err := conn.QueryContext(ctx, "SELECT column_name FROM (DESCRIBE SELECT * FROM read_parquet("+quoted(file)+")) WHERE column_name IN ('run', 'step', 'gen')")
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
	err := conn.Raw(func(raw any) (err error) {
		a, err := duckdb.NewAppenderFromConn(raw.(driver.Conn), "", table)
		if err != nil {
			return err
		}
		defer closing(a, &err)
		for _, row := range rows {
			if err := a.AppendRow(row...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("fill table %s: %w", table, err)
	}
	return nil
}

// createRuns makes the table of the catalogue.
func createRuns(ctx context.Context, conn *sql.Conn, runs []analysis.Run) error {
	const columns = "run VARCHAR, recipe VARCHAR, seed UBIGINT, steps INTEGER, steps_done INTEGER, created TIMESTAMP, status VARCHAR, success_before DOUBLE, success_after DOUBLE"
	if _, err := conn.ExecContext(ctx, "CREATE TABLE "+runsTable+" ("+columns+")"); err != nil {
		return fmt.Errorf("create table %s: %w", runsTable, err)
	}
	rows := make([][]driver.Value, len(runs))
	for i, r := range runs {
		rows[i] = []driver.Value{r.Run, r.Recipe, r.Seed, int32(r.Steps), int32(r.StepsDone), created(r), r.Status, optional(r.Before), optional(r.After)}
	}
	return fill(conn, runsTable, rows)
}
