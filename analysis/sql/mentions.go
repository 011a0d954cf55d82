package sql

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// runsTable is the table made from the catalogue, policiesTable the one of the policies that heads name.
const (
	runsTable     = "runs"
	policiesTable = "policies"
)

// madeTables are the tables that no Parquet shard holds.
var madeTables = []schema.Table{runsTable, policiesTable, schema.Batch, schema.ReplayBatch}

var words = regexp.MustCompile(`[a-z_][a-z0-9_]*`)

// outright are the words by which a query may reach tables that it does not name.
var outright = []string{"show", "tables", "information_schema", "sqlite_master", "query", "query_table", "pragma",
	"pg_catalog"}

// mentioned returns the tables that a query may read. It errs on the side of more: a column, an alias or
// a comment of a table's name counts as a mention.
func mentioned(query string) []schema.Table {
	found := words.FindAllString(strings.ToLower(query), -1)
	all := slices.ContainsFunc(found, func(w string) bool {
		return slices.Contains(outright, w) || strings.HasPrefix(w, "duckdb_")
	})
	var out []schema.Table
	for _, t := range append(schema.Tables(), madeTables...) {
		if all || slices.Contains(found, string(t)) {
			out = append(out, t)
		}
	}
	return out
}

// named reports whether a query holds a table's name. A query that reaches tables without naming them sees the columns
// of batches and no rows, so that a list of tables does not load them.
func named(query string, table schema.Table) bool {
	return slices.Contains(words.FindAllString(strings.ToLower(query), -1), string(table))
}

var sources = regexp.MustCompile(`\b(?:from|join)\s+([a-z_][a-z0-9_]*)`)

// read returns the tables that follow a FROM or JOIN in a lower-case query. In contrast to mentioned, it does
// not take a column of a table's name for the table.
func read(query string) []schema.Table {
	var out []schema.Table
	for _, m := range sources.FindAllStringSubmatch(query, -1) {
		if t := schema.Table(m[1]); (slices.Contains(madeTables, t) || slices.Contains(schema.Tables(), t)) &&
			!slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}
