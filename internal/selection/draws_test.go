package selection

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

// published are the examples of schema/README.md, section "Random draws".
type published struct {
	Streams []struct {
		Label       string
		Coordinates []uint64
		Seed, First uint64
		Units       []float64
	}
	Selections []struct {
		Rule    string
		Set     []string
		Seed    uint64
		Step    int
		Rewards map[string][]float64
		// Penalties are p_err + p_format of each group's trajectories.
		Penalties map[string][]float64
		Counts    map[string][]int
	}
}

// A reader of the description of the format can make the streams and the draws again: its examples are what the code
// does.
func TestPublishedDraws(t *testing.T) {
	text, err := os.ReadFile("../../schema/README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)<!-- draws -->\n```json\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, block, "the examples are gone")
	var want published
	require.NoError(t, json.Unmarshal(block[1], &want))
	require.NotEmpty(t, want.Streams)
	for _, s := range want.Streams {
		require.Equal(t, s.Seed, seed.Derive(s.Label, s.Coordinates...), s.Label)
		r := seed.Rand(s.Label, s.Coordinates...)
		require.Equal(t, s.First, r.Uint64(), s.Label)
		for _, u := range s.Units {
			require.Equal(t, u, r.Float64(), s.Label)
		}
	}
	require.NotEmpty(t, want.Selections)
	for _, s := range want.Selections {
		recipe := resolved(t, s.Set...)
		recipe.Seed = s.Seed
		var rows []resample.Row
		for group, rewards := range s.Rewards {
			for i, r := range rewards {
				row := resample.Row{GroupID: group, TrajectoryID: group + "/" + string(rune('0'+i)), Reward: r}
				if p := s.Penalties[group]; p != nil {
					row.Penalties = &resample.Penalties{Error: p[i]}
				}
				rows = append(rows, row)
			}
		}
		out, err := Chain(recipe, s.Step).Select(rows)
		require.NoError(t, err, s.Rule)
		got := map[string][]int{}
		for _, r := range out.Rows {
			got[r.GroupID] = append(got[r.GroupID], r.Count)
		}
		require.Equal(t, s.Counts, got, s.Rule)
	}
	require.Equal(t, "00001/0000", schema.GroupID(1, 0)) // as the examples have it
}
