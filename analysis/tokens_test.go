package analysis_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// Samples 1 and 3 of a group answer at once, in the five tokens that the batch and the stage logprobs
// have of every trajectory; the others call a tool first, and theirs do not fit.
func TestTokenRows(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Outputs: true})
	v, err := analysis.New(objects).Visible(context.Background(), "r")
	require.NoError(t, err)
	rows, err := v.TokenRows(context.Background(), 1)
	require.NoError(t, err)
	require.Len(t, rows, recordtest.Groups*recordtest.Samples)
	require.Equal(t, analysis.TokenRow{
		GroupID: "00001/0000", TrajectoryID: "00001/0000/001", Mask: []int32{0, 0, 0, 1, 1},
		LogProbs: []float32{0, 0, 0, -0.5, -0.25}, Entropies: []float32{0, 0, 0, 0.75, 0.5},
		OldLogProbs: []float32{0, 0, 0, -0.5, -0.25}, Advantages: []float32{0, 0, 0, -1.5, -1.5},
		Anchors: []string{"a"},
	}, rows[1])
	two := rows[0]
	require.Equal(t, []int32{0, 0, 0, 1, 1, 0, 0, 0, 1, 1}, two.Mask)
	require.Equal(t, []float32{0, 0, 0, -0.5, -0.25, 0, 0, 0, -0.5, -0.25}, two.LogProbs)
	require.Len(t, two.Anchors, 2)
	require.Nil(t, two.OldLogProbs)
	require.Nil(t, two.Advantages)
	require.Nil(t, rows[3].Advantages, "sample 3 is dropped")
}
