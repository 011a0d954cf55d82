package sql_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// TestTablesFilledInPieces: a session's tables have the same rows however many files a statement reads, also where
// shards share files.
func TestTablesFilledInPieces(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "a", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	recordtest.Train(t, objects, recordtest.Options{Run: "b", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	const query = "select run, step, trajectory_id, reward from rewards order by all"
	rows := func() [][]any {
		session, err := sql.Open(context.Background(), analysis.New(objects), []string{"a", "b"}, query)
		require.NoError(t, err)
		out, err := session.Ask(context.Background(), query)
		require.NoError(t, err)
		require.NoError(t, session.Close())
		return out.Rows
	}
	want := rows()
	require.Len(t, want, 2*2*recordtest.Groups*recordtest.Samples)
	for _, n := range []int{1, 3} {
		restore := sql.SetFilesAtOnce(n)
		got := rows()
		restore()
		require.Equal(t, want, got)
	}
}
