package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// The rows that a fork shares are read once for the run that has made them and once for the fork.
func TestSharedRowsAreThoseOfBothRuns(t *testing.T) {
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	r.Fork("fork", 1)
	for _, table := range []string{"rewards", "turns", "evaluations"} {
		of := func(run string) [][]any {
			got, err := query(t, objects, "select * exclude (run) from "+table+" where run = '"+run+
				"' and coalesce(step, 0) < 2 order by all")
			require.NoError(t, err)
			return got.Rows
		}
		require.NotEmpty(t, of("r"), table)
		require.Equal(t, of("r"), of("fork"), table)
	}
	got, err := query(t, objects, "select run, step, count(*) n from rewards group by all order by all")
	require.NoError(t, err)
	require.Len(t, got.Rows, 3)
	require.Equal(t, got.Rows[0][2], got.Rows[1][2], "fork 1, r 1, r 2")
}
