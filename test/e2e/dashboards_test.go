package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dashboard is a file of deploy/monitoring/dashboards, as Grafana imports and exports it.
type dashboard struct {
	Title, Description string
	Panels             []struct {
		Title       string
		FieldConfig struct{ Defaults struct{ Unit string } }
		GridPos     struct{ X, Y int }
		Targets     []struct{ Expr, LegendFormat string }
	}
}

func dashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(), "deploy", "monitoring", "dashboards", "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d), file)
		all = append(all, d)
	}
	require.Len(t, all, 4)
	return all
}

// asked is a panel's expression for a run, whose rates are of a time that holds several scrapes.
func asked(expr, run string) string {
	return strings.NewReplacer("$run", run, "$__rate_interval", "1m").Replace(expr)
}

// Each panel says what it shows, has its own place and title, and asks about a run only on the page about one.
func TestDashboardsAreWhole(t *testing.T) {
	for _, d := range dashboards(t) {
		require.NotEmpty(t, d.Description, d.Title)
		taken := map[any]bool{}
		for _, p := range d.Panels {
			require.False(t, taken[p.Title] || taken[p.GridPos], "%s: another panel has the title or place of %q",
				d.Title, p.Title)
			taken[p.Title], taken[p.GridPos] = true, true
			require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
			require.NotEmpty(t, p.Targets, p.Title)
			for _, q := range p.Targets {
				require.NotEmpty(t, q.LegendFormat, p.Title)
				require.Equal(t, d.Title == "Ropewalk: one run", strings.Contains(q.Expr, "$run"), p.Title)
				require.NotContains(t, asked(q.Expr, "r"), "$", p.Title)
			}
		}
	}
}

// unshown gives the reason why a metric of the program is in no panel.
var unshown = map[string]string{
	"ropewalk_run_info":                  "its labels are the choice of runs of the page about one run",
	"ropewalk_run_parked":                "only parked runs have it, and RopewalkRunParked shows its labels",
	"ropewalk_monitor_up":                "RopewalkMonitorDown reads it, and a panel shows for how long it was not 1",
	"ropewalk_gpu_info":                  "its labels describe the device, and its value is always 1",
	"ropewalk_gpu_reason":                "only unhealthy devices have it: RopewalkGPUUnhealthy shows its labels",
	"ropewalk_gpu_devices":               "Device health has a line for each of them",
	"ropewalk_gpu_event_faults_total":    "polls of the devices go on meanwhile (docs/gpu.md)",
	"ropewalk_gpu_memory_free_bytes":     "it is the memory less what is in use",
	"ropewalk_gpu_memory_reserved_bytes": "the driver decides it, and it is part of the memory in use",
	"ropewalk_gpu_energy_joules_total":   "Device power is its rate",
	"ropewalk_gpu_pcie_generation":       "it is a property of the host that `ropewalk gpu` shows",
	"ropewalk_gpu_pcie_lanes":            "likewise",
}

// series are the names that Prometheus gives a metric's time series; for a histogram these are several.
var series = regexp.MustCompile(`\bropewalk_[a-z0-9_]+?(_bucket|_sum|_count)?\b`)

// metricsIn returns the names of the program's metrics in a text, such as an expression or the names of series, each
// once, in order.
func metricsIn(text string) []string {
	found := map[string]bool{}
	for _, m := range series.FindAllStringSubmatch(text, -1) {
		found[m[0][:len(m[0])-len(m[1])]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// shownMetrics returns the metrics that panels show.
func shownMetrics(t *testing.T) []string {
	t.Helper()
	var all strings.Builder
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				all.WriteString(q.Expr + "\n")
			}
		}
	}
	return metricsIn(all.String())
}

func TestMetricsOfAText(t *testing.T) {
	require.Equal(t, []string{"ropewalk_a", "ropewalk_b_total", "ropewalk_summed"}, metricsIn("max(ropewalk_summed) / "+
		"rate(ropewalk_a_count[5m]) + ropewalk_b_total{run=\"x\"} or ropewalk:threshold:c + ropewalk_a_bucket"))
}

// The list of metrics without a panel holds none that has one.
func TestUnshownMetrics(t *testing.T) {
	shown := shownMetrics(t)
	require.Contains(t, shown, "ropewalk_stage_seconds")
	for name, reason := range unshown {
		require.NotContains(t, shown, name)
		require.NotEmpty(t, reason, name)
	}
}
