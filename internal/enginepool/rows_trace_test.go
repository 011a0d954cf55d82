package enginepool

import (
	"log/slog"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/tracetest"
	"github.com/ropewalk/ropewalk/internal/trace"
)

// Rows of several shards share the engine, and each is a span of the shard that asked for it.
func TestEachRowIsASpanOfItsShard(t *testing.T) {
	c := tracetest.New(t)
	tracer := c.Tracer(t)
	s, versions := sampling(t)
	rows := s.Rows(128)
	if rows == nil {
		t.Skip("without the own kernels, numbers depend on the rows that generate together")
	}
	defer rows.Close()
	const shards, each = 3, 5
	var group sync.WaitGroup
	for shard := range shards {
		ctx, span := trace.Start(tracer.Step(t.Context(), "r", 1, 0), "episodes", slog.Int("shard", shard))
		for i := range each {
			group.Go(func() {
				g, err := rows.Generate(trace.With(ctx, slog.Int("row", i)), versions[0], randomRow(uint64(i)))
				require.NoError(t, err)
				require.NotEmpty(t, g.Tokens[0])
			})
		}
		defer span.End("")
	}
	bad := randomRow(1)
	bad.MaxTokens = 1000
	_, err := rows.Generate(tracer.Step(t.Context(), "r", 1, 0), versions[0], bad)
	require.Error(t, err)
	group.Wait()
	require.NoError(t, tracer.Close())
	parents, failed := map[string]map[string]bool{}, 0
	for _, sent := range c.Spans(t) {
		require.Equal(t, "engine sample", sent.Name, "only the rows have ended")
		if sent.Failure != "" {
			require.Equal(t, "failed", sent.Failure)
			failed++
			continue
		}
		if parents[sent.Parent] == nil {
			parents[sent.Parent] = map[string]bool{}
		}
		parents[sent.Parent][sent.Attributes["row"]] = true
		tokens, err := strconv.Atoi(sent.Attributes["tokens"])
		require.NoError(t, err)
		require.Positive(t, tokens)
		wait, err := strconv.ParseFloat(sent.Attributes["queue_seconds"], 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, wait, 0.0)
		require.NotEmpty(t, sent.Attributes["device"])
	}
	require.Equal(t, 1, failed)
	require.Len(t, parents, shards)
	for _, rows := range parents {
		require.Len(t, rows, each)
	}
}
