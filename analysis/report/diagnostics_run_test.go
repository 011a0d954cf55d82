package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// trained is a run of the fixture with all that a recipe may ask for.
func trained(t *testing.T, o recordtest.Options) *mem.Store {
	t.Helper()
	objects := mem.New()
	o.Run, o.Seed, o.Created = "r", 1, "2026-01-02T03:04:05Z"
	recordtest.Train(t, objects, o)
	return objects
}

// missingOf gives the reason for each figure that a page leaves out.
func missingOf(page *report.Page) map[string]string {
	out := map[string]string{}
	for _, l := range page.LeftOut {
		for _, title := range l.Titles {
			out[title] = l.Why
		}
	}
	return out
}

func TestDiagnosticsOfARun(t *testing.T) {
	page := gather(t, trained(t, recordtest.Options{Steps: 3, Outputs: true, Buffer: true, Critic: true}), "r",
		analysis.Heads)
	all := figures(page)

	// Every trajectory answers in two tokens of 0.75 and 0.5 nats, and those of samples 0 and 2 ask in as many before.
	require.Equal(t, [][]string{{"1", "12", "36", "0.625", "1.88"}, {"2", "12", "36", "0.625", "1.88"},
		{"3", "12", "36", "0.625", "1.88"}}, all["entropy-sums"].Table.Rows)
	require.Contains(t, all["entropy-sums"].Note, "tokens of 3 steps")

	// The top fifth of 36 tokens is 8, tied at 0.75 nats with all 18 that open a turn. 6 × 4 tokens a step
	// are in the first turn of their trajectory, 12 after a tool's answer.
	require.Equal(t, []string{"1", "0.75", "66.7%", "33.3%"}, all["hesitation"].Table.Rows[0])

	require.Contains(t, all["buffer"].SVG, "in the buffer")
	require.Contains(t, all["buffer-worth"].Note, "P50")
	require.Contains(t, all["critic"].SVG, "explained variance")
	require.Contains(t, all["values"].SVG, "return")
	require.Contains(t, all["clipping"].SVG, "dual clip")
	require.Contains(t, all["anchors"].Note, "3 steps")

	missing := missingOf(page)
	require.Contains(t, missing["What VSPO sampled"], "does not sample by value")
	require.Contains(t, missing["From one tool call to the next"], "has two calls")
	require.Contains(t, missing["Branches per trajectory"], "no branches")
	require.Contains(t, missing["Valid format and valid action"], "No trajectory records")
	require.NotContains(t, missing, "The replay buffer")
}

func TestDiagnosticsSayWhatARunDidNotRecord(t *testing.T) {
	page := gather(t, trained(t, recordtest.Options{Steps: 1}), "r", analysis.Heads)
	all := figures(page)
	for _, id := range []string{"critic", "values", "buffer", "models", "eight-groups", "stability"} {
		require.NotContains(t, all, id)
	}
	said := missingOf(page)
	require.Contains(t, said["The replay buffer"], "no replay buffer")
	require.Contains(t, said["Stability at the end"], "1 are done")
	require.Contains(t, said["Where the divergence comes from"], "reference log-probabilities")
	require.Contains(t, htmlOf(t, page), "What this record cannot show")
}

func TestRunsWithoutACriticOrStepsHaveNoEmptySection(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "young", Steps: 1, Planned: 5, Seed: 1,
		Created: "2026-01-02T03:04:05Z", Open: true})
	page := gather(t, objects, "young", analysis.Heads)
	missing := missingOf(page)
	require.Greater(t, len(missing), 25)
	for title, why := range missing {
		require.NotContains(t, why, "cannot be used", title)
	}
	for _, s := range page.Sections {
		require.NotEmpty(t, s.Figures, s.ID)
	}
}
