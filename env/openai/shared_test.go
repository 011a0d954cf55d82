package openai

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/realdata"
)

// airline reads tau-bench's real trajectories, if they are present.
func airline(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(realdata.Path(t, "taubench", "gpt-4o-airline.json"))
	require.NoError(t, err)
	return data
}

// The import keeps every trial of the real file, with every field of every message.
func TestTauBench(t *testing.T) {
	data := airline(t)
	var source []struct {
		Task   int             `json:"task_id"`
		Trial  int             `json:"trial"`
		Reward float64         `json:"reward"`
		Info   json.RawMessage `json:"info"`
		Traj   json.RawMessage `json:"traj"`
	}
	require.NoError(t, json.Unmarshal(data, &source))
	tasks, err := Read(data)
	require.NoError(t, err)
	require.Len(t, tasks, 50)
	got := Rows(1, tasks, letters)
	require.Len(t, got.Trajectories, 200)
	calls := map[string]int{}
	for i, want := range source {
		r := got.Trajectories[4*want.Task+want.Trial]
		require.JSONEq(t, string(want.Traj), *r.Messages, "item %d", i)
		var rest struct {
			Info json.RawMessage `json:"info"`
		}
		require.NoError(t, json.Unmarshal([]byte(*r.Item), &rest))
		require.JSONEq(t, string(want.Info), string(rest.Info), "item %d", i)
		require.Equal(t, want.Reward, *r.SourceReward)
		require.Equal(t, want.Reward == 1, *r.Reference)
		require.Equal(t, SourceTauBench, r.Source)
		require.NoError(t, r.Validate())
		rows, err := CallRows(r)
		require.NoError(t, err)
		require.Len(t, rows, int(r.ToolCalls))
		for _, c := range rows {
			calls[c.Status]++
		}
	}
	require.Equal(t, map[string]int{StatusOK: 1091, StatusToolError: 73}, calls)
	for _, r := range got.Turns {
		require.NoError(t, r.Validate())
	}
}
