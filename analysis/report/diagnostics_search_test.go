package report

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2" // the database of the report's questions
	"github.com/stretchr/testify/require"
)

// searched are the rows of a step: trajectory a succeeds, b fails, and c never searches; d shops.
const searched = `
create table rewards (run text, step integer, trajectory_id text, success boolean);
insert into rewards values ('r', 1, 'a', true), ('r', 1, 'b', false), ('r', 1, 'c', false), ('r', 2, 'd', true),
  ('other', 1, 'a', true);
create table tool_calls (run text, step integer, trajectory_id text, name text, arguments text, excluded text);
insert into tool_calls values
  ('r', 1, 'a', 'search', '{"query": "Ada  Bell"}', null), ('r', 1, 'a', 'wiki_search', '{"query": " ada bell "}', null),
  ('r', 1, 'a', 'browse', '{"document": "Ada Bell"}', null), ('r', 1, 'a', 'python', '{"code": "1"}', null),
  ('r', 1, 'b', 'search', '{"query": "Rye"}', null), ('r', 1, 'b', 'search', '{"query": "Ouse"}', null),
  ('r', 1, 'b', 'search', '{"query"', null), ('r', 1, 'b', 'search', '{"query": "Rye"}', 'the tool broke'),
  ('other', 1, 'a', 'search', '{"query": "Rye"}', null);
create table transitions (run text, step integer, trajectory_id text, action text, valid boolean, excluded text);
insert into transitions values
  ('r', 2, 'd', 'search[red socks]', true, null), ('r', 2, 'd', 'click[b02k3m4q5x]', true, null),
  ('r', 2, 'd', 'click[back to search]', true, null), ('r', 2, 'd', ' Search[Red socks]', true, null),
  ('r', 2, 'd', 'click[b02k3m4q5x]', true, null), ('r', 2, 'd', 'search[lost]', false, null);`

// Worked by hand: a searches twice for the same and reads a page, b searches three times, once with unreadable words.
func TestSearchesAreCounted(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for statement := range strings.SplitSeq(searched, ";\n") {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	rows, err := db.QueryContext(t.Context(), strings.ReplaceAll(searchSQL, "RUN", "'r'"))
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var got [][12]sql.NullFloat64
	for rows.Next() {
		var row [12]sql.NullFloat64
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		require.NoError(t, rows.Scan(into...))
		got = append(got, row)
	}
	require.NoError(t, rows.Err())
	n := func(x float64) sql.NullFloat64 { return sql.NullFloat64{Float64: x, Valid: true} }
	third := 1.0 / 3.0
	require.Equal(t, [][12]sql.NullFloat64{
		// step, trajectories, searches, mean, queries, documents, then of successes and failures: searches, documents,
		// repeated
		{n(1), n(3), n(5), n(5.0 / 3), n(1), n(third), n(2), n(1.5), n(1), n(0), n(0.5), n(0)},
		{n(2), n(1), n(2), n(2), n(1), n(1), n(2), {}, n(1), {}, n(0.5), {}},
	}, got)
}

// A run that never searches has no figure, and says why.
func TestFiguresOfSearches(t *testing.T) {
	const columns = "step trajectories searches mean queries documents searches_won searches_lost documents_won " +
		"documents_lost repeated_won repeated_lost"
	f := drawn(asked("searching", columns), searchEffort)
	require.Equal(t, noSearches, f.Empty)
	d := asked("searching", columns,
		[]any{int32(1), int64(2), 5.0, 2.5, 2.0, 1.0, 2.0, 3.0, 1.0, 0.0, 0.5, nil})
	require.Contains(t, drawn(d, searchEffort).SVG, "searches: 2.5")
	require.Contains(t, drawn(d, searchOutcomes).SVG, "searches, failures: 3")
	require.Contains(t, drawn(d, searchRepeats).SVG, "in successes: 50.0%")
}
