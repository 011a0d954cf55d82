package sql_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A record of an earlier version answers queries with today's names of the stages.
func TestEarlierNamesOfStages(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Outputs: true, EarlierNames: true,
		Created: "2026-01-04T03:04:05Z"})
	for query, want := range map[string]string{
		"select count(*) > 0 as there from token_outputs": `{"columns":["there"],"rows":[[true]]}`,
		"select stage, count(*) n from timings where stage in ('forward', 'logprobs') group by 1": `{"columns":` +
			`["stage","n"],"rows":[["logprobs",2]]}`,
	} {
		got, err := sql.Query(context.Background(), sql.Options{Store: objects, Cache: t.TempDir(), Query: query})
		require.NoError(t, err)
		require.Equal(t, want, jsonOf(t, got))
	}
}

// A query reads measured times with and without the ids of traces: those of versions before 1.9 have none.
func TestTracesOfMeasuredTimes(t *testing.T) {
	objects := recordtest.Archived(t, filepath.Join("..", "testdata", "records", "v1.8.tar.gz"))
	recordtest.Train(t, objects, recordtest.Options{Run: "traced", Steps: 1, Seed: 1, Created: "2026-01-04T03:04:05Z",
		Trace: "0af7651916cd43dd8448eb211c80319c"})
	got, err := sql.Query(t.Context(), sql.Options{Store: objects, Cache: t.TempDir(), Query: "select run, " +
		"count(trace_id) = count(*) traced, count(trace_id) = 0 untraced, any_value(trace_id) trace, " +
		"any_value(span_id) span from timings group by run order by run"})
	require.NoError(t, err)
	require.Equal(t, `{"columns":["run","traced","untraced","trace","span"],"rows":[["golden",false,true,null,null],`+
		`["traced",true,false,"0af7651916cd43dd8448eb211c80319c","`+recordtest.Span+`"]]}`, jsonOf(t, got))
}
