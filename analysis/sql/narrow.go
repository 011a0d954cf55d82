package sql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// narrow keeps the runs that the conditions of a query leave of each table that it reads, so that the others' manifests
// are not read. DuckDB's own plan says which conditions these are. Where it does not say, all runs are kept.
func narrow(ctx context.Context, catalogue []analysis.Run, files *analysis.Cache, tables []schema.Table,
	query string) (kept []analysis.Run, err error) {
	// The plan shows texts without escapes, so that a condition with one could read as another.
	if len(catalogue) < 2 || !strings.Contains(query, "run") || strings.Contains(query, "''") ||
		strings.ContainsAny(query, `\$`) {
		return catalogue, nil
	}
	db, err := open()
	if err != nil {
		return nil, err
	}
	defer closing(db, &err)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("start DuckDB: %w", err)
	}
	defer closing(conn, &err)
	names := make([][]driver.Value, len(catalogue))
	for i, r := range catalogue {
		names[i] = []driver.Value{r.Run}
	}
	if err := sketch(ctx, conn, files, tables, names); err != nil {
		return nil, err
	}
	wanted, all := scanned(ctx, conn, query)
	if all {
		return catalogue, nil
	}
	return slices.DeleteFunc(slices.Clone(catalogue), func(r analysis.Run) bool { return !wanted[r.Run] }), nil
}

// sketch makes tables with the columns of the record's tables and no rows, and one that holds the names of the runs.
func sketch(ctx context.Context, conn *sql.Conn, files *analysis.Cache, tables []schema.Table,
	names [][]driver.Value) error {
	statements := []string{"CREATE TABLE " + namesTable + " (run VARCHAR)",
		// it would take the sketch's values for the record's
		"SET disabled_optimizers = 'statistics_propagation'"}
	for _, table := range tables {
		from := "(" + policyColumns + ")"
		if table == runsTable {
			continue
		}
		if table != policiesTable {
			empty, err := emptyFile(table, files)
			if err != nil {
				return err
			}
			from = fmt.Sprintf("AS SELECT '' AS run, 0 AS step, 0 AS gen, "+
				"COLUMNS(c -> c NOT IN ('run', 'step', 'gen')) FROM read_parquet(%s)", quoted(empty))
		}
		statements = append(statements, fmt.Sprintf("CREATE TABLE %s %s", table, from))
	}
	for _, s := range statements {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("sketch the tables: %w", err)
		}
	}
	if err := fill(conn, namesTable, names); err != nil {
		return err
	}
	if slices.Contains(tables, runsTable) {
		return createRuns(ctx, conn, nil)
	}
	return nil
}

// namesTable holds the names of the runs.
const namesTable = "names_of_runs"

// plan is a node of DuckDB's plan of a query.
type plan struct {
	Name  string `json:"name"`
	Extra struct {
		Table   string `json:"Table"`
		Filters any    `json:"Filters"` // a text, or a list of them
	} `json:"extra_info"`
	Children []plan `json:"children"`
}

// scanned returns the runs that a query reads of the sketched tables, or that it may read all of them.
func scanned(ctx context.Context, conn *sql.Conn, query string) (runs map[string]bool, all bool) {
	var kind, text string
	if conn.QueryRowContext(ctx, "EXPLAIN (FORMAT json) "+query).Scan(&kind, &text) != nil {
		return nil, true // what is wrong with it shows when it is asked
	}
	var plans []plan
	if json.Unmarshal([]byte(text), &plans) != nil || len(plans) == 0 {
		return nil, true
	}
	runs = map[string]bool{}
	for len(plans) > 0 {
		p := plans[0]
		plans = append(plans[1:], p.Children...)
		table := p.Extra.Table[strings.LastIndex(p.Extra.Table, ".")+1:]
		if table == "" || table == runsTable {
			continue
		}
		found, ok := satisfying(ctx, conn, p.Extra.Filters)
		if !ok {
			return nil, true
		}
		for _, run := range found {
			runs[run] = true
		}
	}
	return runs, false
}

// satisfying returns the runs that satisfy a scan's conditions on the run alone, and whether it has such conditions.
func satisfying(ctx context.Context, conn *sql.Conn, filters any) (runs []string, any bool) {
	texts, _ := filters.([]interface{})
	if one, ok := filters.(string); ok {
		texts = append(texts, one)
	}
	query := "SELECT run FROM " + namesTable + " WHERE true"
	for _, text := range texts {
		condition := fmt.Sprintf(" AND (%s)", strings.TrimPrefix(fmt.Sprint(text), "optional: "))
		if _, err := conn.ExecContext(ctx, query+condition); err == nil { // it is about the run
			query, any = query+condition, true
		}
	}
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, false
	}
	defer rows.Close()
	for rows.Next() {
		var run string
		if rows.Scan(&run) != nil {
			return nil, false
		}
		runs = append(runs, run)
	}
	return runs, any && rows.Err() == nil
}
