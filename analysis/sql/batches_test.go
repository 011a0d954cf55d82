package sql_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// The training batch is a table like the others, with its per-token advantages, next to the rows that it comes from.
func TestBatches(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Buffer: true, Outputs: true,
		Critic: true, Created: "2026-01-02T03:04:05Z"})
	visible, err := analysis.New(objects).Visible(t.Context(), "r")
	require.NoError(t, err)
	shards, err := visible.Shards(t.Context(), schema.Batch)
	require.NoError(t, err)
	var rows, tokens, learnt, turns int64
	for _, s := range shards {
		data, err := visible.Bytes(t.Context(), s)
		require.NoError(t, err)
		batch, err := schema.DecodeBatch(data)
		require.NoError(t, err)
		for _, r := range batch {
			rows++
			tokens += int64(len(r.Advantages))
			for _, a := range r.Advantages {
				if a != 0 {
					learnt++
				}
			}
			if r.Turn != nil {
				turns++
			}
		}
	}
	require.Positive(t, learnt)
	ask := func(query string) [][]any {
		got, err := sql.Query(context.Background(), analysis.New(objects), query)
		require.NoError(t, err, query)
		return got.Rows
	}
	require.Equal(t, [][]any{{rows, tokens, learnt, turns}}, ask("select count(*), sum(len(advantages))::bigint, "+
		"sum(len(list_filter(advantages, x -> x <> 0)))::bigint, count(turn) from batch"))
	require.Equal(t, [][]any{{rows, rows}}, ask("select count(*), count(r.reward) from batch b join rewards r "+
		"using (run, step, trajectory_id) where len(b.advantages) = len(b.token_ids)"))
	require.Equal(t, [][]any{{int64(2)}}, ask("select count(distinct step) from batch where old_logprobs is not null"))
	names := [][]any{}
	for _, c := range schema.Columns(schema.Batch) {
		names = append(names, []any{c.Name})
	}
	const columns = "select column_name from information_schema.columns where table_name = "
	require.Equal(t, names, ask(columns+"'replay_batch' offset 3"))
	require.Equal(t, [][]any{{int64(0)}}, ask("select count(*) from replay_batch"), "no row is replayed")
}
