package report

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Worked by hand, in seconds: a shard generates in 0–4 and 8–9, another in 2–6. Tools run in 4–7 and, as one call, in
// 5–5.5. So generation is alone in 0–4 and 8–9, both run in 4–6, tools alone in 6–7, and nothing in 7–8.
const timed = `
create table timings (run text, step integer, stage text, kind text, start_micros bigint, end_micros bigint);
insert into timings values
  ('r', 1, 'rollout', 'activity', 0, 4000000), ('r', 1, 'rollout', 'activity', 2000000, 6000000),
  ('r', 1, 'rollout', 'activity', 8000000, 9000000), ('r', 1, 'sandbox', 'activity', 4000000, 7000000),
  ('r', 1, 'sandbox', 'tool_call', 5000000, 5500000), ('r', 1, 'sandbox', 'tool_call', 6000000, null),
  ('r', 1, 'update', 'activity', 7000000, 8000000), ('r', 2, 'rollout', 'activity', 20000000, 21000000),
  ('r', null, 'rollout', 'activity', 0, 90000000), ('other', 1, 'rollout', 'activity', 0, 90000000);`

func TestTimesOfARollout(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), timed)
	require.NoError(t, err)
	rows, err := db.QueryContext(t.Context(), strings.ReplaceAll(rolloutTimeSQL, "RUN", "'r'"))
	require.NoError(t, err)
	defer rows.Close()
	a := answer{}
	a.Columns, err = rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		var step int64
		var generation, both, tools, idle float64
		require.NoError(t, rows.Scan(&step, &generation, &both, &tools, &idle))
		a.Rows = append(a.Rows, []any{step, generation, both, tools, idle})
	}
	require.NoError(t, rows.Err())
	require.Equal(t, [][]any{{int64(1), 5.0, 2.0, 1.0, 1.0}, {int64(2), 1.0, 0.0, 0.0, 0.0}}, a.Rows)
	f := drawn(data{answers: map[string]answer{"rollout_time": a}}, rolloutTime)
	require.Contains(t, f.Note, "generation alone 60.0%, generation and tools 20.0%, tools alone 10.0%, idle 10.0%")
	require.Contains(t, f.SVG, "tools alone: 1")
}
