package report_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// gather makes the page of a run.
func gather(t testing.TB, objects store.Store, run string, gen analysis.Generation) *report.Page {
	t.Helper()
	page, err := report.Gather(context.Background(), report.Options{Store: objects, Cache: t.TempDir(), Run: run, Gen: gen})
	require.NoError(t, err)
	return page
}

func htmlOf(t testing.TB, page *report.Page) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, page.WriteHTML(&out))
	return out.String()
}

// drawnRun is a run of a few steps as the quickstart makes them.
func drawnRun(t testing.TB) *mem.Store {
	t.Helper()
	objects := mem.New()
	recordtest.Large(t, objects, recordtest.LargeOptions{Run: "drawn", Steps: 12, Groups: 12, Samples: 8, Shards: 2, EvaluateEvery: 4, Problems: 60, Seed: 3})
	return objects
}

func figures(page *report.Page) map[string]report.Figure {
	out := map[string]report.Figure{}
	for _, s := range page.Sections {
		for _, f := range s.Figures {
			out[f.ID] = f
		}
	}
	return out
}

// ROPEWALK_REPORT_OUT keeps the page for looking at it.
func TestEveryFigureIsDrawn(t *testing.T) {
	page := gather(t, drawnRun(t), "drawn", analysis.Heads)
	text := htmlOf(t, page)
	if out := os.Getenv("ROPEWALK_REPORT_OUT"); out != "" {
		require.NoError(t, os.WriteFile(filepath.Clean(out), []byte(text), 0o644))
	}
	all := figures(page)
	for _, id := range []string{
		"reward", "success", "levels", "evaluation-levels", "funnel", "outcomes", "variance", "tool-errors",
		"entropy", "kl", "clipping", "lengths", "stages", "orchestration", "latency",
	} {
		f, ok := all[id]
		require.True(t, ok, id)
		require.Empty(t, f.Empty, id)
		require.True(t, strings.HasPrefix(f.SVG, "<svg "), id)
		require.NotContains(t, f.SVG, "NaN", id)
		require.NotEmpty(t, f.Questions, id)
		for _, q := range f.Questions {
			require.Contains(t, q.SQL, "'drawn'", id)
		}
		require.Contains(t, text, `id="figure-`+id+`"`)
	}
	require.Len(t, page.Samples, 3)
}
