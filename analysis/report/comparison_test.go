package report_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// twoRuns are runs with other seeds and lengths, as the quickstart makes them.
func twoRuns(t testing.TB) store.Store {
	t.Helper()
	objects := mem.New()
	for i, run := range []string{"left", "right"} {
		recordtest.Large(t, objects, recordtest.LargeOptions{Run: run, Steps: 8 + 2*i, Groups: 8, Samples: 8, Shards: 2,
			EvaluateEvery: 4, Problems: 30, Seed: uint64(3 + i)})
	}
	return objects
}

func compared(t testing.TB, objects store.Store, runs ...string) (*report.ComparisonPage, string) {
	t.Helper()
	page, err := report.GatherComparison(context.Background(), analysis.New(objects), runs)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, page.WriteHTML(&out))
	return page, out.String()
}

func figuresOf(sections []report.Section) map[string]report.Figure {
	return figures(&report.Page{Sections: sections})
}

// Every learning figure has a line of each run, in the colour of the page's one legend.
func TestRunsAreOverlaid(t *testing.T) {
	page, text := compared(t, twoRuns(t), "left", "right")
	if out := os.Getenv("ROPEWALK_REPORT_OUT"); out != "" {
		require.NoError(t, os.WriteFile(filepath.Clean(out), []byte(text), 0o644))
	}
	all := figuresOf(page.Sections)
	for _, id := range []string{
		"reward", "success", "held-out", "greedy", "level-2", "level-3", "level-4", "held-out-level-2",
		"held-out-level-3", "held-out-level-4", "entropy", "kl", "lengths", "clipping", "gradients", "advantages",
		"kept", "zero-advantage", "tool-errors", "tool-calls", "turns", "truncated", "seconds",
	} {
		f, ok := all[id]
		require.True(t, ok, id)
		for _, class := range []string{"line s1", "line s2"} {
			require.Equal(t, 1, strings.Count(f.SVG, `class="`+class+`"`), "%s: %s", id, class)
		}
		require.Contains(t, f.SVG, "A left: ", id)
		require.Contains(t, f.SVG, "B right: ", id)
		require.NotContains(t, f.SVG, "s3", id)
		require.NotContains(t, f.SVG, "NaN", id)
		require.Empty(t, f.Legend, id)
		require.NotEmpty(t, f.Questions, id)
	}
	require.Equal(t, 2, strings.Count(text, `<span class="key">`), "one legend for the page")
	require.Regexp(t, `<i class="line s1"></i><b>A</b> left `, text)
	require.Regexp(t, `<i class="line s2"></i><b>B</b> right `, text)
	lacks(t, text, "<script", "http://", "https://", "NaN", "ZgotmplZ")
}

func TestTablesOfDifferences(t *testing.T) {
	page, text := compared(t, twoRuns(t), "left", "right")
	all := figuresOf(page.Sections)
	var paths []string
	for _, row := range all["recipes"].Table.Rows {
		paths = append(paths, row[0])
	}
	require.Equal(t, []string{"seed", "steps"}, paths)
	require.Equal(t, []string{"runs", "where", "row and columns"}, all["first-difference"].Table.Columns)
	require.Contains(t, all["first-difference"].Table.Rows[0][1], "A and B first differ ")
	rows := all["held-out-differences"].Table.Rows
	require.Equal(t, []string{"warm start", "all", "30", "A → B"}, rows[0][:4])
	require.Equal(t, "last", rows[len(rows)-1][0], "the runs end at different steps")
	interval := regexp.MustCompile(`^[+−][0-9.]+ to [+−][0-9.]+$`)
	for _, row := range rows {
		require.Regexp(t, interval, row[6])
	}
	require.Len(t, all["level-differences"].Table.Rows, 3*len(rows))
	require.Contains(t, text, "<summary>")
	require.Contains(t, page.Tiles[0].Name, "B − A (last)")
}

// A run without a policy shares the figures that it has, and the rest is left out.
func TestAnImportIsComparedWithARun(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	recordtest.Import(t, objects, "import")
	page, _ := compared(t, objects, "r", "import")
	all := figuresOf(page.Sections)
	require.Contains(t, all["success"].SVG, `class="line s2"`)
	require.NotContains(t, all["entropy"].SVG, `class="line s2"`)
	require.NotContains(t, all, "critic")
	require.Equal(t, "No two runs were evaluated on the same problems.", page.LeftOut[0].Why)
	require.Empty(t, page.Sections[0].Figures[0].Empty)
}

// The browser shows each run's line in the colour that the legend gives it.
func TestTheComparisonInABrowser(t *testing.T) {
	browser := chromium(t)
	_, text := compared(t, twoRuns(t), "left", "right")
	const colours = `<script>
(() => {
  const stroke = (s) => getComputedStyle(document.querySelector("#figure-success .line." + s)).stroke;
  const legend = (s) => getComputedStyle(document.querySelector(".runs .key i." + s)).borderTopColor;
  const cards = [...document.querySelectorAll("main figure")].map((f) => f.getBoundingClientRect());
  const width = document.querySelector("main .figures").getBoundingClientRect().width;
  const rows = {};
  for (const c of cards) rows[Math.round(c.top)] = (rows[Math.round(c.top)] || 0) + c.width + 16;
  const full = Object.values(rows).every((w) => Math.abs(w - 16 - width) < 2);
  document.body.dataset.probed = [stroke("s1") === legend("s1"), stroke("s2") === legend("s2"),
    stroke("s1") !== stroke("s2"), document.documentElement.scrollWidth <= window.innerWidth, full].join(" ");
})();
</script>`
	file := filepath.Join(t.TempDir(), "comparison.html")
	open := strings.Replace(policy.ReplaceAllString(text, ""), "</body>", colours+"</body>", 1)
	require.NoError(t, os.WriteFile(file, []byte(open), 0o644))
	found := regexp.MustCompile(`data-probed="([^"]*)"`).FindStringSubmatch(loaded(t, browser, file, ""))
	require.Len(t, found, 2)
	require.Equal(t, "true true true true true", found[1], "A's colour, B's colour, two colours, fits, no holes")
}
