package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/dashboards"
)

// answering is a Prometheus that has data for queries with a text.
func answering(t *testing.T, part string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		results := []any{}
		switch query := r.URL.Query().Get("query"); {
		case strings.HasSuffix(r.URL.Path, "/query"):
			results = append(results, map[string]any{"metric": map[string]string{"run": "newest"},
				"value": []any{1, "5"}})
		case strings.Contains(query, part):
			for _, stage := range []string{"update", "a<b"} {
				results = append(results, map[string]any{"metric": map[string]string{"stage": stage},
					"values": []any{[]any{1000.0, "1"}, []any{1030.0, "NaN"}, []any{1060.0, "3"}}})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"result": results}})
	}))
	t.Cleanup(server.Close)
	return server
}

func TestDrawnPanels(t *testing.T) {
	server, folder := answering(t, `ropewalk_run_stage_seconds{run="newest"}`), t.TempDir()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-prometheus", server.URL, "-for", "2m", "-out", folder},
		time.Unix(1100, 0), &out))
	require.Contains(t, out.String(), "run.svg: 1 of ")
	require.Contains(t, out.String(), "overview.svg: 0 of ")
	for _, d := range dashboards.All() {
		text, err := os.ReadFile(filepath.Join(folder, d.Name+".svg"))
		require.NoError(t, err)
		decoder := xml.NewDecoder(bytes.NewReader(text))
		for err = nil; err == nil; {
			_, err = decoder.Token()
		}
		require.True(t, errors.Is(err, io.EOF), "%s is well-formed: %v", d.Name, err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "run.svg"))
	require.NoError(t, err)
	require.Contains(t, string(text), "Time of the stages")
	require.Contains(t, string(text), "a&lt;b: 3", "the latest value")
	require.Equal(t, 2, strings.Count(string(text), `class="line `))
}

func TestFaultsOfPrometheus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status": "error", "error": "bad"}`))
	}))
	defer server.Close()
	err := run(t.Context(), []string{"-prometheus", server.URL, "-run", "r", "-out", t.TempDir()}, time.Now(),
		io.Discard)
	require.ErrorContains(t, err, ": bad")
	err = run(t.Context(), []string{"-prometheus", server.URL, "-out", t.TempDir()}, time.Now(), io.Discard)
	require.ErrorContains(t, err, "ropewalk_run_started_timestamp_seconds): bad")
}
