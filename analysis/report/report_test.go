package report_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// gather makes the page of a run.
func gather(t testing.TB, objects store.Store, run string, gen analysis.Generation) *report.Page {
	t.Helper()
	page, err := report.Gather(context.Background(), analysis.New(objects).WithGeneration(gen), run, false)
	require.NoError(t, err)
	return page
}

// The figures alone equal the whole report's, without samples of trajectories.
func TestFiguresOnly(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 7, Created: "2026-01-02T03:04:05Z"})
	whole := gather(t, objects, "r", analysis.Heads)
	require.NotEmpty(t, whole.Samples)
	page, err := report.Gather(t.Context(), analysis.New(objects), "r", true)
	require.NoError(t, err)
	require.Empty(t, page.Samples)
	require.Equal(t, whole.Sections, page.Sections)
	require.Equal(t, whole.Tiles, page.Tiles)
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
	recordtest.Large(t, objects, recordtest.LargeOptions{Run: "drawn", Steps: 12, Groups: 12, Samples: 8, Shards: 2,
		EvaluateEvery: 4, Problems: 60, Seed: 3})
	return objects
}

// lacks requires that a long text has none of some parts.
func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		require.Equal(t, -1, strings.Index(text, p), "the page contains %q", p)
	}
}

// written is what the policy wrote in an episode.
func written(e report.Episode) string {
	var b strings.Builder
	for _, turn := range e.Turns {
		for _, s := range turn.Spans {
			if strings.HasPrefix(s.Class, "w") {
				b.WriteString(s.Text)
			}
		}
	}
	return b.String()
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
		"reward", "success", "levels", "evaluation-levels", "funnel", "outcomes", "tool-errors",
		"entropy", "kl", "clipping", "lengths", "advantages", "advantage-signs", "gradients", "stages",
		"rollout-time", "orchestration", "latency", "devices",
		"zero-advantage", "group-rewards", "pass-at-k", "penalties", "answer-counts", "effort",
		"truncated", "tool-load", "clusters",
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

func TestFiguresAgreeWithTheRecordsOwn(t *testing.T) {
	objects := drawnRun(t)
	figures, err := analysis.New(objects).Figures(context.Background(), "drawn")
	require.NoError(t, err)
	page := gather(t, objects, "drawn", analysis.Heads)
	tiles := map[string]report.Tile{}
	for _, tile := range page.Tiles {
		tiles[tile.Name] = tile
	}
	require.Equal(t, fmt.Sprintf("%.1f%%", 100*figures.OrchestrationShare), tiles["orchestration"].Value)
	require.Equal(t, fmt.Sprint(figures.Trajectories), tiles["trajectories"].Value)
	view, err := analysis.New(objects).Overview(context.Background(), "drawn")
	require.NoError(t, err)
	first, last := view.Steps[0], view.Steps[len(view.Steps)-1]
	require.Equal(t, fmt.Sprintf("%.3g → %.3g", first.Reward, last.Reward), tiles["reward"].Value)
}

// What a policy writes must never be markup.
func TestWhatThePolicyWroteIsText(t *testing.T) {
	const evil = `</span></pre></script><script>document.title="owned"</script>` +
		`<img src=x onerror=alert(1)> "quoted" 'too' & {{.Run}}`
	objects := mem.New()
	recordtest.Large(t, objects, recordtest.LargeOptions{Run: "evil", Steps: 1, Groups: 2, Samples: 4, Shards: 1,
		Problems: 4, Seed: 1, Response: evil})
	text := htmlOf(t, gather(t, objects, "evil", analysis.Heads))
	lacks(t, text, "<script>document", "<img", "http://", "https://") // the page loads nothing
	require.Equal(t, 1, strings.Count(text, "</script>"))
	require.Equal(t, 1, strings.Count(text, "<script>"))
	require.Contains(t, text, "&lt;")
}

func TestConversationsShowTasksAndTools(t *testing.T) {
	objects := mem.New()
	recordtest.Conversations(t, objects, "talk")
	page := gather(t, objects, "talk", analysis.Heads)
	all := figures(page)
	require.Equal(t, [][]string{{"1", "50.0%"}, {"2", "0.0%"}}, all["pass"].Table.Rows)
	require.NotEmpty(t, all["pass"].SVG)
	require.Equal(t, []string{"task", "trials", "successes", "reward", "calls", "errors", "most used tool"},
		all["tasks"].Table.Columns)
	require.Equal(t, [][]string{{"q0", "2", "1", "0.5", "2", "1", "look"}, {"q1", "2", "1", "0.5", "2", "1", "look"}},
		all["tasks"].Table.Rows)
	require.Equal(t, [][]string{{"look", "4", "2", "4", "50.0%"}}, all["tools"].Table.Rows)
	require.Contains(t, htmlOf(t, page), "most used tool")
	recordtest.Import(t, objects, "import")
	require.NotContains(t, figures(gather(t, objects, "import", analysis.Heads)), "tasks")
}

// An import has no policy, no evaluations and no times: their cards are left out, and the page says why once.
func TestAnImportHasNoEmptyCards(t *testing.T) {
	objects := mem.New()
	recordtest.Import(t, objects, "import")
	page := gather(t, objects, "import", analysis.Heads)
	text := htmlOf(t, page)
	all := figures(page)
	for _, id := range []string{"reward", "success", "levels", "funnel", "outcomes", "zero-advantage", "lengths"} {
		require.NotEmpty(t, all[id].SVG, id)
	}
	for id, f := range all {
		require.Empty(t, f.Empty, id)
		require.True(t, f.SVG != "" || f.Table != nil, id)
	}
	var sections []string
	for _, s := range page.Sections {
		require.NotEmpty(t, s.Figures, s.ID)
		sections = append(sections, s.ID)
	}
	require.Equal(t, []string{"learning", "selection", "update", "diagnostics", "recipe"}, sections)
	missing := missingOf(page)
	for title, why := range map[string]string{
		"Success by level, held-out problems": "Nothing was evaluated", "Entropy": "No policy was updated",
		"Divergence from the sampling policy": "No policy was updated", "Gradient norm": "No policy was updated",
		"Tool errors in positive trajectories": "No trajectory called a tool",
		"Stage times per step":                 "No times of activities",
		"Orchestration share":                  "No times of activities",
		"Tool latency":                         "No times of tool calls",
	} {
		require.Contains(t, missing[title], why, title)
	}
	require.Equal(t, 1, strings.Count(text, "No policy was updated: the run is an import, or no step had "+
		"trajectories to train on.</dd>"))
	require.Equal(t, "It is 4.", written(page.Samples[0].Episodes[0]))
	require.Contains(t, text, "neither log-probabilities nor entropies")
	lacks(t, text, "log-probability −", "NaN", `id="time"`)
}

func TestDivergenceFromAReference(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z",
		Outputs: true})
	all := figures(gather(t, objects, "r", analysis.Heads))
	require.Contains(t, all["kl"].SVG, "from the reference")
	require.Contains(t, all["stages"].SVG, "logprobs")
}

// A loss that does not split the clipped ratios by sign has the line of all of them.
func TestClippedRatiosWithoutASplit(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "old", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	f := figures(gather(t, objects, "old", analysis.Heads))["clipping"]
	require.Contains(t, f.SVG, "clipped")
	require.NotContains(t, f.SVG, "A &gt; 0")
}

func TestReplaysAreSetSideBySide(t *testing.T) {
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	none := missingOf(gather(t, objects, "r", analysis.AllGenerations))
	require.Contains(t, none["Rewards by generation"], "No step has more than one generation")
	r.Replay(2, 1)
	heads, all := gather(t, objects, "r", analysis.Heads), gather(t, objects, "r", analysis.AllGenerations)
	require.Equal(t, heads.Sections, all.Sections[:len(all.Sections)-1], "the figures show what the heads name")
	table := figures(all)["replayed-rewards"].Table
	require.Equal(t, []string{"step", "gen", "trajectories", "reward", "success"}, table.Columns)
	require.Equal(t, [][]string{{"2", "0", "12", "0.667", "66.7%"}, {"2", "1", "12", "0.333", "66.7%"}}, table.Rows)
	require.Contains(t, htmlOf(t, all), `id="replays"`)

	replayed := gather(t, objects, "r", analysis.Numbered(1))
	require.Contains(t, htmlOf(t, replayed), "ropewalk sql --gen 1")
	_, err := report.Gather(t.Context(), analysis.New(objects).WithGeneration(analysis.Numbered(9)), "r", false)
	require.ErrorIs(t, err, analysis.ErrNoGeneration)
}

// The SQL that a figure shows gives what it was drawn from.
func TestShownSQLCanBeAskedAgain(t *testing.T) {
	objects := drawnRun(t)
	page, err := report.Gather(context.Background(), analysis.New(objects), "drawn", false)
	require.NoError(t, err)
	asked := map[string]bool{}
	for _, f := range figures(page) {
		for _, q := range f.Questions {
			if asked[q.Name] {
				continue
			}
			asked[q.Name] = true
			got, err := sql.Query(context.Background(), analysis.New(objects), q.SQL)
			require.NoError(t, err, q.Name)
			require.NotEmpty(t, got.Rows, q.Name)
		}
	}
	require.Len(t, asked, 23)
}

func TestNoSuchRun(t *testing.T) {
	_, err := report.Gather(context.Background(), analysis.New(mem.New()), "none", false)
	require.ErrorIs(t, err, analysis.ErrNoRun)
}

// A run that has committed nothing but its recipe has a page that says so.
func TestARunWithoutSteps(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "young", Steps: 1, Planned: 5, Seed: 1,
		Created: "2026-01-02T03:04:05Z", Open: true})
	text := htmlOf(t, gather(t, objects, "young", analysis.Heads))
	require.Contains(t, text, "No step of this run is done yet.")
	lacks(t, text, "NaN")
}
