package sql

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// runsTable is the table made from the catalogue.
const runsTable = "runs"

var words = regexp.MustCompile(`[a-z_][a-z0-9_]*`)

// outright are the words by which a query may reach tables that it does not name.
var outright = []string{"show", "tables", "information_schema", "sqlite_master", "query", "query_table", "pragma", "pg_catalog"}

// mentioned returns the tables that a query may read. It errs on the side of more: a column, an alias or
// a comment of a table's name counts as a mention.
func mentioned(query string) []schema.Table {
	found := words.FindAllString(strings.ToLower(query), -1)
	all := slices.ContainsFunc(found, func(w string) bool {
		return slices.Contains(outright, w) || strings.HasPrefix(w, "duckdb_")
	})
	var out []schema.Table
	for _, t := range append(schema.Tables(), runsTable) {
		if all || slices.Contains(found, string(t)) {
			out = append(out, t)
		}
	}
	return out
}
