package sql_test

import (
	"context"
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
