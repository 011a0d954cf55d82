package dashboards

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write deploy/monitoring/dashboards again")

const folder = "../../../deploy/monitoring/dashboards"

// Grafana's files are those of the declarations, and there are no others.
func TestFilesAreUpToDate(t *testing.T) {
	names := map[string]bool{}
	for _, d := range All() {
		text, err := d.JSON()
		require.NoError(t, err)
		path := filepath.Join(folder, d.Name+".json")
		names[d.Name+".json"] = true
		if *update {
			require.NoError(t, os.WriteFile(path, text, 0o644))
		}
		there, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(there), string(text), "go test ./internal/testing/dashboards -update writes %s", path)
	}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, names[f.Name()], "%s belongs to no dashboard", f.Name())
	}
}

func TestDeclarationsAreWhole(t *testing.T) {
	for _, d := range All() {
		require.NotEmpty(t, d.Doc, d.Name)
		titles := map[string]bool{}
		for _, p := range d.Panels {
			require.False(t, titles[p.Title], "%s: two panels %q", d.Name, p.Title)
			titles[p.Title] = true
			require.NotEmpty(t, p.Unit, p.Title)
			require.NotEmpty(t, p.Queries, p.Title)
			for _, q := range p.Queries {
				require.NotEmpty(t, q.Legend, p.Title)
				require.Equal(t, d.OneRun, regexp.MustCompile(`\$run`).MatchString(q.Expr), p.Title)
				require.NotContains(t, q.For("r", "5m"), "$", p.Title)
			}
		}
	}
}

func TestMetricsOfAText(t *testing.T) {
	require.Equal(t, []string{"ropewalk_a", "ropewalk_b_total", "ropewalk_summed"}, Metrics("max(ropewalk_summed) / "+
		"rate(ropewalk_a_count[5m]) + ropewalk_b_total{run=\"x\"} or ropewalk:threshold:c + ropewalk_a_bucket"))
}

// The list of metrics without a panel holds none that has one.
func TestUnshownMetrics(t *testing.T) {
	shown, why := Shown("ropewalk_stage_seconds")
	require.True(t, shown, why)
	shown, why = Shown("ropewalk_nothing")
	require.False(t, shown)
	require.Empty(t, why)
	for name, reason := range unshown {
		shown, why := Shown(name)
		require.False(t, shown, "%s is in a panel", name)
		require.Equal(t, reason, why)
		require.NotEmpty(t, reason, name)
	}
}
