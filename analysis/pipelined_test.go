package analysis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A report of a run whose rollouts ran ahead says which versions sampled, from what the activities really commit.
func TestTheReportOfAPipelinedRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a tiny policy")
	}
	objects := mem.New()
	// Every group counts, so that each step makes another policy.
	trainForReal(t, objects, pipelinetest.Wrap{}, "pipeline.max_staleness=1", "loss.old_log_probs=recompute",
		"resample.vspo=null", "resample.roc=null", "loss.entropy=0.01")
	page, err := report.Gather(t.Context(), analysis.New(objects), "r", false)
	require.NoError(t, err)
	shown := map[string]report.Figure{}
	for _, s := range page.Sections {
		for _, f := range s.Figures {
			shown[f.ID] = f
		}
	}
	require.Contains(t, shown["turn-lags"].SVG, "<svg")
	require.Contains(t, shown["group-versions"].SVG, "<svg")
	rows := shown["version-lengths"].Table.Rows
	require.Len(t, rows, 1)
	require.Equal(t, []string{"one version", "24", "192", "1"}, rows[0][:4], "groups, trajectories and the largest lag")
}
