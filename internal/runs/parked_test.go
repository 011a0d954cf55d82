package runs

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/workflows"
)

func TestAParkedRunNamesTheWaysToGoOn(t *testing.T) {
	parked := ParkedError{workflows.Progress{Run: "r", Step: 3, Steps: 9,
		Parked: &workflows.Parked{Kind: "disk_full",
			Failures: []workflows.StageFailure{{Stage: "reward", Shard: -1, Turn: -1, Text: "disk is full"}},
			Skip:     "2 shards"}}}
	require.EqualError(t, parked, "run r is parked: reward: disk is full")
	require.Equal(t, "parked", parked.Report().Status)
	require.Equal(t, 3, parked.Report().Step)
	var out bytes.Buffer
	DescribeParked(&out, parked.Progress)
	for _, part := range []string{"parked at step 3 (disk_full)", "  reward: disk is full\n",
		"ropewalk unpark r --retry", "ropewalk unpark r --skip     (2 shards)", "ropewalk unpark r --abort"} {
		require.Contains(t, out.String(), part)
	}
	parked.Progress.Parked.NoSkip = "nothing is left"
	out.Reset()
	DescribeParked(&out, parked.Progress)
	require.Contains(t, out.String(), "(--skip is not possible: nothing is left)")
	require.NotContains(t, out.String(), "unpark r --skip")
}
