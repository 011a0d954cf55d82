package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/recordtest"
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

func TestDiagnosticsOfARun(t *testing.T) {
	page := gather(t, trained(t, recordtest.Options{Steps: 3, Outputs: true, Buffer: true, Critic: true}), "r", analysis.Heads)
	all := figures(page)

	// Every trajectory answers in two tokens of 0.75 and 0.5 nats, and those of samples 0 and 2 ask in as many before.
	require.Equal(t, [][]string{{"1", "12", "36", "0.625", "1.88"}, {"2", "12", "36", "0.625", "1.88"}, {"3", "12", "36", "0.625", "1.88"}}, all["entropy-sums"].Table.Rows)
	require.Contains(t, all["entropy-sums"].Note, "Of 3 steps")

	// The top fifth of 36 tokens is 8, tied at 0.75 nats with all 18 that open a turn. 6 × 4 tokens a step
	// stand in the first turn of its trajectory, 12 after a tool's answer.
	require.Equal(t, []string{"1", "0.75", "66.7%", "33.3%"}, all["hesitation"].Table.Rows[0])

	require.Contains(t, all["buffer"].SVG, "held")
	require.Contains(t, all["buffer-worth"].Note, "P50")
	require.Contains(t, all["critic"].SVG, "explained variance")
	require.Contains(t, all["values"].SVG, "return")
	require.Contains(t, all["bounds"].SVG, "dual clip")
	require.Contains(t, all["anchors"].Note, "3 steps")

	missing := map[string]string{}
	for _, row := range all["not-told"].Table.Rows {
		missing[row[0]] = row[1]
	}
	require.Contains(t, missing["What VSPO drew"], "does not sample by value")
	require.Contains(t, missing["From one tool call to the next"], "called tools twice")
	require.Contains(t, missing["Branches per trajectory"], "no parents")
	require.Contains(t, missing["Valid format and valid action"], "No trajectory says")
	require.NotContains(t, missing, "The replay buffer")
}

func TestDiagnosticsSayWhatARunDidNotRecord(t *testing.T) {
	page := gather(t, trained(t, recordtest.Options{Steps: 1}), "r", analysis.Heads)
	all := figures(page)
	for _, id := range []string{"critic", "values", "buffer", "bounds", "models", "eight-groups", "stability"} {
		require.NotContains(t, all, id)
	}
	said := map[string]string{}
	for _, row := range all["not-told"].Table.Rows {
		require.NotEmpty(t, row[1], row[0])
		said[row[0]] = row[1]
	}
	require.Contains(t, said["The replay buffer"], "no replay buffer")
	require.Contains(t, said["Stability at the end"], "1 are done")
	require.Contains(t, said["Where the divergence comes from"], "a reference's")
	require.Contains(t, htmlOf(t, page), "What this record cannot tell")
}

func TestRunsWithoutACriticOrStepsHaveNoEmptySection(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "young", Steps: 1, Planned: 5, Seed: 1, Created: "2026-01-02T03:04:05Z", Open: true})
	all := figures(gather(t, objects, "young", analysis.Heads))
	require.Greater(t, len(all["not-told"].Table.Rows), 15)
	for _, f := range all {
		require.NotContains(t, f.Empty, "cannot be used", f.ID)
	}
}
