package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// A branch begins with the turns of its parent that it shares, and so does a branch of a branch.
func TestWrittenJoinsBranches(t *testing.T) {
	a := answer{}
	a.Columns = []string{"step", "trajectory_id", "turn", "parent", "leaf", "written"}
	a.Rows = [][]any{
		{int32(2), "g/0", int32(0), nil, true, "1 2"}, {int32(2), "g/0", int32(1), nil, true, "3"},
		{int32(2), "g/0", int32(2), nil, true, "4"},
		{int32(2), "g/1", int32(1), "g/0", true, "5 6"}, {int32(2), "g/1", int32(2), "g/0", true, ""},
		{int32(2), "g/2", int32(2), "g/1", true, "7"},
		{int32(3), "g/1", int32(0), nil, true, "8"}, {int32(3), "g/m", int32(0), nil, false, "9"},
	}
	got, err := written(a)
	require.NoError(t, err)
	require.Equal(t, []diagnose.Written{
		{ID: "2/g/0", Tokens: []int32{1, 2, 3, 4}}, {ID: "2/g/1", Tokens: []int32{1, 2, 5, 6}},
		{ID: "2/g/2", Tokens: []int32{1, 2, 5, 6, 7}}, {ID: "3/g/1", Tokens: []int32{8}},
	}, got)
	f := drawn(data{answers: map[string]answer{"written": a}}, clusters)
	require.Contains(t, f.Note, "in 4 trajectories of up to ten steps")
	require.Equal(t, 4, strings.Count(f.SVG, "<circle "))
	require.NotContains(t, f.SVG, "NaN")
}
