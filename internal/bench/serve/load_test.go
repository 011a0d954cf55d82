package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// fake answers as a server of the dialect does, with so many tokens.
func fake(t *testing.T, d dialect, tokens int, asked *atomic.Int64) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var body map[string]any
		if r.URL.Path != d.path || json.NewDecoder(r.Body).Decode(&body) != nil || len(body["prompt"].([]any)) != 8 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for range tokens {
			fmt.Fprint(w, "data: {\"content\": \"t\", \"stop\": false}\n\n")
		}
		fmt.Fprintf(w, "data: {\"stop\": true, \"tokens_predicted\": %d, \"usage\": {\"completion_tokens\": %d}}\n\n",
			tokens, tokens)
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// All streams send all their requests, and an answer with another number of tokens than the one asked for is an error.
func TestLoad(t *testing.T) {
	w := load{words: [][]int32{{1, 2, 3}, {4}}, prompt: 8, tokens: 5}
	for _, d := range []dialect{ropewalk, llama} {
		var asked atomic.Int64
		m, err := w.server("it", fake(t, d, 5, &asked), d).measure(t.Context(), 3)
		require.NoError(t, err)
		require.EqualValues(t, 3*perStream, asked.Load())
		require.Len(t, m.first, 3*perStream)
		require.Positive(t, m.rate)
		_, err = w.server("it", fake(t, d, 4, &asked), d).measure(t.Context(), 1)
		require.ErrorContains(t, err, "4 new tokens, want 5")
		_, err = w.server("it", fake(t, dialect{path: "/other"}, 5, &asked), d).measure(t.Context(), 1)
		require.ErrorContains(t, err, "400 Bad Request")
	}
}

// Ratios are those of our server to each side, round by round.
func TestCompare(t *testing.T) {
	constant := func(name string, rate float64) side {
		return side{name, func(_ context.Context, streams int) (measured, error) {
			return measured{rate: rate * float64(streams), first: []float64{0.25}}, nil
		}}
	}
	rows, err := compare(t.Context(), []side{constant("ours", 30), constant("theirs", 20)}, 4, 3)
	require.NoError(t, err)
	require.Equal(t, []bench.Row{
		{What: "4 streams, ours", Figures: []bench.Figure{bench.Of("tokens/s", 120), bench.Of("ours ÷ it", 1),
			bench.Of("first token p50 ms", 250), bench.Of("p99 ms", 250)}},
		{What: "4 streams, theirs", Figures: []bench.Figure{bench.Of("tokens/s", 80), bench.Of("ours ÷ it", 1.5),
			bench.Of("first token p50 ms", 250), bench.Of("p99 ms", 250)}},
	}, rows)
}
