package status_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/status"
)

// TestOf derives the states of testdata/cases.json, which the tests of the Python reader share.
func TestOf(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/cases.json")
	require.NoError(t, err)
	var cases []struct {
		Name         string
		Facts        status.Facts
		State        status.State
		Kind, Reason string
	}
	require.NoError(t, json.Unmarshal(text, &cases))
	require.NotEmpty(t, cases)
	seen := map[status.State]bool{}
	for _, c := range cases {
		seen[c.State] = true
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, status.Status{State: c.State, Kind: c.Kind, Reason: c.Reason}, status.Of(c.Facts))
		})
	}
	require.Len(t, seen, 10, "a case for every state")
}

func TestStatusInWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, "stopped early", status.Status{State: status.StoppedEarly}.String())
	require.Equal(t, "parked (no_space)", status.Status{State: status.Parked, Kind: "no_space"}.String())
	require.Equal(t, "ropewalk unpark r --retry", status.Status{State: status.Parked}.Next("r"))
	require.Equal(t, "ropewalk unpause r", status.Status{State: status.Paused}.Next("r"))
	require.Equal(t, "ropewalk resume r", status.Status{State: status.Interrupted}.Next("r"))
	require.Equal(t, "ropewalk follow r", status.Status{State: status.Running}.Next("r"))
	require.Empty(t, status.Status{State: status.StoppedEarly}.Next("r"))
}
