package sql_test

import (
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/sql"
)

// An index holds the rows that were added as a whole, and its readers can change nothing.
func TestIndex(t *testing.T) {
	x, err := sql.OpenIndex(t.Context(), "scored", []sql.IndexColumn{{Name: "step", Type: "integer"},
		{Name: "kept", Type: "boolean"}, {Name: "reward", Type: "double"}, {Name: "texts", Type: "text[]"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	ask := func(query string, args ...any) [][]any {
		got, err := x.Ask(t.Context(), query, args...)
		require.NoError(t, err, query)
		return got.Rows
	}
	add := func(end error, rows ...[]driver.Value) error {
		return x.Add(t.Context(), func(put func([]driver.Value) error) error {
			for _, row := range rows {
				if err := put(row); err != nil {
					return err
				}
			}
			require.Equal(t, [][]any{{int64(0)}}, ask("select count(*) from scored where step = 2"), "not yet")
			return end
		})
	}
	require.Equal(t, [][]any{{int64(0)}}, ask("select count(*) from scored"))
	require.NoError(t, add(nil, []driver.Value{int32(1), true, 0.5, []string{"a", "ü"}},
		[]driver.Value{int32(1), nil, nil, []string(nil)}))
	require.Equal(t, [][]any{{true, 0.5, []any{"a", "ü"}}, {nil, nil, []any{}}}, ask(
		"select kept, reward, texts from scored where step = ? order by rowid", 1))
	broken := errors.New("the record is damaged")
	require.ErrorIs(t, add(broken, []driver.Value{int32(2), true, 1.0, []string{}}), broken)
	require.Error(t, add(nil, []driver.Value{int32(2), "neither true nor false", 1.0, []string{}}))
	require.Equal(t, [][]any{{int64(2)}}, ask("select count(*) from scored"), "a failed addition adds nothing")
	require.NoError(t, add(nil, []driver.Value{int32(2), true, 1.0, []string{"b"}}))
	require.Equal(t, [][]any{{int64(3), 1.5}}, ask("select count(*), sum(reward) from scored"))

	for query, want := range map[string]string{
		"drop table scored":                          "the record is for reading",
		"insert into scored values (1, true, 1, [])": "the record is for reading",
		"select 1; drop table scored":                "want one statement",
		"select * from read_text('/etc/hosts')":      "disabled by configuration",
		"select * from rewards":                      "cannot be read here, only the columns of scored",
		"set lock_configuration = false":             "the record is for reading",
	} {
		_, err := x.Ask(t.Context(), query)
		require.ErrorIs(t, err, sql.ErrQuery, query)
		require.ErrorContains(t, err, want, query)
	}
}
