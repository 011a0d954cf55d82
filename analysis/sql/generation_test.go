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

func TestGenerations(t *testing.T) {
	objects := twoRuns(t)
	r := recordtest.Train(t, objects, recordtest.Options{Run: "replayed", Steps: 2, Seed: 3,
		Created: "2026-01-04T03:04:05Z"})
	r.Replay(2, 1)
	for _, c := range []struct {
		name, query, want string
		gen               analysis.Generation
	}{
		{"heads", "select gen, count(*) n from rewards where run = 'replayed' group by 1 order by 1",
			`{"columns":["gen","n"],"rows":[[0,24]]}`, analysis.Heads},
		{"all", "select step, gen, count(*) n, sum(reward) s from rewards where run = 'replayed' group by all order " +
			"by all", `{"columns":["step","gen","n","s"],"rows":[[1,0,12,6],[2,0,12,8],[2,1,12,4]]}`,
			analysis.AllGenerations},
		{"one", "select step, gen, sum(reward) s from rewards where run = 'replayed' group by all order by all",
			`{"columns":["step","gen","s"],"rows":[[1,0,6],[2,1,4]]}`, analysis.Numbered(1)},
		{"joined with what was not replayed", "select count(*) n from rewards join turns using (run, step, " +
			"trajectory_id) where rewards.gen = 1", `{"columns":["n"],"rows":[[18]]}`, analysis.Numbered(1)},
		{"runs that lack it stay as they are", "select run, max(gen) g from selection group by 1 order by 1",
			`{"columns":["run","g"],"rows":[["done",0],["open",0],["replayed",1]]}`, analysis.Numbered(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := sql.Query(context.Background(), analysis.New(objects).WithGeneration(c.gen), c.query)
			require.NoError(t, err)
			require.Equal(t, c.want, jsonOf(t, got))
		})
	}
	_, err := sql.Query(context.Background(),
		analysis.New(objects).WithGeneration(analysis.Numbered(5)), "select * from rewards")
	require.ErrorIs(t, err, analysis.ErrNoGeneration)
}

// A session holds the columns that its queries mention, and no others.
func TestSession(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	queries := []string{"select avg(reward) from rewards", "select count(*), max(Level) from trajectories where run " +
		"= 'r'"}
	s, err := sql.Open(ctx, analysis.New(objects), nil, queries...)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, q := range queries {
		got, err := s.Ask(ctx, q)
		require.NoError(t, err)
		require.Len(t, got.Rows, 1)
	}
	for _, q := range []string{"select text from trajectories", "select count(*) from turns", "drop table rewards"} {
		_, err = s.Ask(ctx, q)
		require.ErrorIs(t, err, sql.ErrQuery, q)
	}
}
