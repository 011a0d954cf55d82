package report_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A reason has its own colour, the same in every figure of every run, whichever reasons a run has.
func TestAReasonHasOneColour(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	recordtest.Train(t, objects, recordtest.Options{Run: "broken", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z",
		Broken: map[string]string{schema.TrajectoryID(1, 0, 0): "engine lost"}})
	colours := map[string]int{}
	for _, run := range []string{"r", "broken"} {
		all := figures(gather(t, objects, run, analysis.Heads))
		for _, key := range all["outcomes"].Legend {
			if seen, ok := colours[key.Name]; ok {
				require.Equal(t, seen, key.Color, key.Name)
			}
			colours[key.Name] = key.Color
			if key.Name != "kept" {
				require.Regexp(t, fmt.Sprintf(`– %s</text><rect class="column s%d"`, key.Name, key.Color),
					all["funnel"].SVG)
			}
		}
	}
	require.Greater(t, len(colours), 3)
	used := map[int]string{}
	for name, colour := range colours {
		require.Empty(t, used[colour], "%s has the colour of another reason", name)
		used[colour] = name
	}
}

// The recipe's section shows what differs from the defaults, and the rest folded.
func TestTheRecipeAndItsDifferencesFromTheDefaults(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 7, Created: "2026-01-02T03:04:05Z"})
	page := gather(t, objects, "r", analysis.Heads)
	all := figures(page)
	require.Equal(t, [][]string{{"seed", "7", "1", "seed of every random draw of the run"},
		{"steps", "2", "–", "reinforcement-learning steps"}}, all["recipe-chosen"].Table.Rows)
	require.Contains(t, all["recipe-standard"].Table.Folded, "fields")
	for _, row := range all["recipe-standard"].Table.Rows {
		require.Equal(t, row[1], row[2], row[0])
	}
	require.Contains(t, all["made-by"].Table.Rows, []string{"hosts", "host"})
	require.Contains(t, htmlOf(t, page), `<h2>Recipe</h2>`)
}

// A trajectory that something broke has no reward, and the page shows it with the reason.
func TestAnExcludedTrajectoryIsShown(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Created: "2026-01-02T03:04:05Z",
		Broken: map[string]string{schema.TrajectoryID(1, 0, 0): "engine lost"}})
	for _, e := range gather(t, objects, "r", analysis.Heads).Samples[0].Episodes {
		if e.ID == schema.TrajectoryID(1, 0, 0) {
			require.Equal(t, report.Tile{Name: "reward", Value: "none", Note: "engine lost"}, e.Facts[0])
			return
		}
	}
	require.Fail(t, "the excluded trajectory is not among the samples")
}
