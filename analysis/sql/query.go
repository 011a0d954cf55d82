package sql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// ErrQuery marks errors in the query, with DuckDB's text.
var ErrQuery = errors.New("query")

// Result is a query's answer.
type Result struct {
	Columns []string `json:"columns"`
	Types   []string `json:"-"` // DuckDB's names
	Rows    [][]any  `json:"rows"`
}

// Query answers one query, a reading statement, over the committed shards of runs; of all where none is named.
func Query(ctx context.Context, record *analysis.Record, query string, runs ...string) (out Result, err error) {
	s, err := start(ctx, record)
	if err != nil {
		return Result{}, err
	}
	defer closing(s, &err)
	// Columns are united by name before the rows are read: this way each footer of a view is parsed once. A table is
	// filled from each file once, and footers that were kept would be most of a long run's memory.
	if _, err := s.conn.ExecContext(ctx, "SET parquet_metadata_cache = true"); err != nil {
		return Result{}, fmt.Errorf("start DuckDB: %w", err)
	}
	if err := s.load(ctx, mentioned(query), nil, query, runs); err != nil {
		return Result{}, err
	}
	return s.Ask(ctx, query)
}

// load makes the tables of runs: views that a query may read, or copies of columns that several queries do.
func (s *Session) load(ctx context.Context, tables []schema.Table, columns map[schema.Table][]string, query string,
	runs []string) error {
	if len(tables) > 0 || len(runs) > 0 {
		if err := s.createTables(ctx, tables, columns, query, runs); err != nil {
			return err
		}
	}
	dirs := []string{s.files.Dir()}
	if local, ok := s.record.Store().(store.Files); ok {
		dirs = append(dirs, local.Root())
	}
	return lockDown(ctx, s.conn, dirs)
}

func (s *Session) createTables(ctx context.Context, tables []schema.Table, columns map[schema.Table][]string,
	query string, runs []string) error {
	catalogue, err := s.record.Runs(ctx)
	if err != nil {
		return err
	}
	if catalogue, err = only(catalogue, runs); err != nil {
		return err
	}
	if slices.Equal(tables, []schema.Table{runsTable}) {
		return createRuns(ctx, s.conn, catalogue)
	}
	read := catalogue
	if columns == nil {
		if read, err = narrow(ctx, catalogue, s.files, tables, query); err != nil {
			return err
		}
	}
	visible, err := visibleOf(ctx, s.record, read)
	if err != nil {
		return err
	}
	for _, table := range tables {
		switch table {
		case runsTable:
			err = createRuns(ctx, s.conn, catalogue)
		case policiesTable:
			err = createPolicies(ctx, s.conn, visible)
		case schema.Batch, schema.ReplayBatch:
			err = createBatches(ctx, s.conn, table, visible, columns != nil || named(query, table))
		default:
			err = s.createShards(ctx, table, visible, columns[table])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// createShards makes a table that Parquet shards hold.
func (s *Session) createShards(ctx context.Context, table schema.Table, visible []*analysis.Visible,
	words []string) error {
	empty, err := emptyFile(table, s.files)
	if err != nil {
		return err
	}
	shards, err := fetch(ctx, visible, table, s.files)
	if err != nil {
		return err
	}
	return createView(ctx, s.conn, table, empty, shards, words)
}

// visibleOf finds what may be read of runs. A generation that some of them have and others have not
// is read where it is.
func visibleOf(ctx context.Context, record *analysis.Record, catalogue []analysis.Run) ([]*analysis.Visible, error) {
	visible := make([]*analysis.Visible, 0, len(catalogue))
	var lacking error
	found := false
	for _, r := range catalogue {
		v, err := record.Visible(ctx, r.Run)
		switch {
		case errors.Is(err, analysis.ErrNoRun): // it is in the catalogue and has committed nothing yet
			continue
		case errors.Is(err, analysis.ErrNoGeneration):
			lacking = err
			v, err = record.WithGeneration(analysis.Heads).Visible(ctx, r.Run)
		case err == nil:
			found = true
		}
		if err != nil {
			return nil, err
		}
		visible = append(visible, v)
	}
	if lacking != nil && !found {
		return nil, lacking
	}
	return visible, nil
}

// only keeps the runs asked for, all when none is.
func only(catalogue []analysis.Run, names []string) ([]analysis.Run, error) {
	if len(names) == 0 {
		return catalogue, nil
	}
	known := make([]string, len(catalogue))
	for i, r := range catalogue {
		known[i] = r.Run
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, analysis.NoRun(name, name, known)
		}
	}
	return slices.DeleteFunc(slices.Clone(catalogue),
		func(r analysis.Run) bool { return !slices.Contains(names, r.Run) }), nil
}

// reading are the statements that change nothing.
var reading = []duckdb.StmtType{
	duckdb.STATEMENT_TYPE_SELECT, duckdb.STATEMENT_TYPE_PRAGMA, duckdb.STATEMENT_TYPE_CALL,
}

// ask checks that the query only reads and runs it with its parameters.
func ask(ctx context.Context, conn *sql.Conn, query string, args ...any) (out Result, err error) {
	if err := checkReads(ctx, conn, query); err != nil {
		return Result{}, err
	}
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return Result{}, mendable(ctx, err)
	}
	defer closing(rows, &err)
	types, err := rows.ColumnTypes()
	if err != nil {
		return Result{}, mendable(ctx, err)
	}
	for _, t := range types {
		out.Columns = append(out.Columns, t.Name())
		out.Types = append(out.Types, t.DatabaseTypeName())
	}
	out.Rows = [][]any{}
	for rows.Next() {
		row, into := make([]any, len(types)), make([]any, len(types))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return Result{}, mendable(ctx, err)
		}
		for i := range row {
			row[i] = plain(row[i], out.Types[i])
		}
		out.Rows = append(out.Rows, row)
	}
	return out, mendable(ctx, rows.Err())
}

// explained is what an explaining statement starts with; with ANALYZE it runs what it explains.
var explained = regexp.MustCompile(`(?is)^\s*explain\s*(analyze\s|\([^)]*\))?`)

// checkReads refuses statements that write, and more than one at once: what DuckDB may read it may
// write as well.
func checkReads(ctx context.Context, conn *sql.Conn, query string) error {
	kind, err := statementType(ctx, conn, query)
	if err == nil && kind == duckdb.STATEMENT_TYPE_EXPLAIN {
		kind, err = statementType(ctx, conn, explained.ReplaceAllString(query, ""))
	}
	if err != nil {
		return err
	}
	if !slices.Contains(reading, kind) {
		return fmt.Errorf("%w: the record is for reading: want one SELECT, DESCRIBE, SHOW or EXPLAIN statement",
			ErrQuery)
	}
	return nil
}

// statementType prepares one statement, which runs nothing. The driver's PrepareContext will not
// do: of several statements it runs all but the last.
func statementType(ctx context.Context, conn *sql.Conn, query string) (kind duckdb.StmtType, err error) {
	err = conn.Raw(func(raw any) error {
		prepared, err := raw.(driver.Conn).Prepare(query)
		if err != nil && strings.Contains(err.Error(), severalStatements) {
			return fmt.Errorf("%w: want one statement", ErrQuery)
		}
		if err != nil {
			return mendable(ctx, err)
		}
		statement := prepared.(*duckdb.Stmt)
		kind, err = statement.StatementType()
		if err = errors.Join(err, statement.Close()); err != nil {
			return fmt.Errorf("prepare query: %w", err)
		}
		return nil
	})
	return kind, err
}

// severalStatements is how the driver says that a text is not one statement.
const severalStatements = "try using PrepareContext"

// mendable marks an error as the query's, unless the command was interrupted. Where a table is
// unknown, it says which there are.
func mendable(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("ask DuckDB: %w", ctx.Err())
	}
	text := err.Error()
	if m := unknownTable.FindStringSubmatch(text); m != nil {
		text = noTable(m[1]) + strings.TrimPrefix(text, m[0]) + "\nthe record has the tables " +
			strings.Join(Tables(), ", ")
	}
	return fmt.Errorf("%w: %s", ErrQuery, text)
}

// unknownTable matches what DuckDB says of an unknown table. It suggests tables of its own, which are no part of the
// record.
var unknownTable = regexp.MustCompile(`^Catalog Error: Table with name (.*?) does not exist!\n(?:Did you mean .*\n)?`)

const thereIsNoTable = "there is no table "

// noTable suggests the table that an unknown name may mean.
func noTable(name string) string {
	if near := spelling.AllNearest(name, Tables()); len(near) > 0 {
		return thereIsNoTable + name + "; did you mean " + spelling.OrList(near) + "?\n"
	}
	return thereIsNoTable + name + "\n"
}

// Tables returns the names of the tables that a query can read.
func Tables() []string {
	var names []string
	for _, t := range append(schema.Tables(), madeTables...) {
		names = append(names, string(t))
	}
	return names
}

func optional(x *float64) driver.Value {
	if x == nil {
		return nil
	}
	return *x
}

// orNull is null for an empty text.
func orNull(text string) driver.Value {
	if text == "" {
		return nil
	}
	return text
}

// created is when a run was entered into the catalogue; null if the entry does not say it well.
func created(r analysis.Run) driver.Value {
	t, err := time.Parse(time.RFC3339, r.Created)
	if err != nil {
		return nil
	}
	return t.UTC()
}
