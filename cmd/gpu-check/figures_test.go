package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
)

// Their authors count 0.6B, 1.7B and 4B parameters; these are the exact numbers of their published files.
func TestQwen3Sizes(t *testing.T) {
	for i, want := range []int64{596_049_920, 1_720_574_976, 4_022_468_096} {
		require.NoError(t, qwen3[i].shape.Validate())
		require.Equal(t, want, qwen3[i].model().Params, qwen3[i].name)
	}
}

func TestCheckpointingFits(t *testing.T) {
	for _, c := range []struct {
		gib  int64
		want []string
	}{
		{139, []string{"off", "off", "off"}}, // H200
		{80, []string{"off", "off", "on"}},
		{48, []string{"off", "on", "on"}},
		{0, []string{"on", "on", "on"}}, // the driver does not tell
	} {
		l := &lab{o: options{device: torch.CUDA}, machine: hardware{GPUMemoryBytes: c.gib << 30}}
		var got []string
		for _, s := range qwen3 {
			got = append(got, l.checkpointing(s))
		}
		require.Equal(t, c.want, got, c.gib)
	}
}

func TestPaced(t *testing.T) {
	l := &lab{o: options{device: torch.CUDA}, machine: hardware{GPUs: []string{"NVIDIA H200"}}}
	s := qwen3[2]
	p := l.paced(s, 9, []float64{3, 2, 4})
	require.Equal(t, 3.0, p.step)
	require.Equal(t, 9.0, p.first)
	require.InEpsilon(t, 4*8192/3.0, p.tokens, 1e-12)
	require.InEpsilon(t, 4*s.model().TrainFlops(8192)/3/989e12, p.mfu, 1e-12)
	l.machine.GPUs = []string{"another"}
	require.Zero(t, l.paced(s, 9, []float64{3}).mfu, "of a peak that is not known")
}

func TestApart(t *testing.T) {
	mean, most := apart([][]int32{{1, 2}, {1}}, [][]float32{{1, 2}, {3}}, [][]float32{{9, 9, 1, 2.5}, {9, 2}})
	require.InDelta(t, 0.5, mean, 1e-9)
	require.InDelta(t, 1, most, 1e-9)
}

func TestEqualFor(t *testing.T) {
	require.Equal(t, 3, equalFor([]int32{1, 2, 3}, []int32{1, 2, 3}))
	require.Equal(t, 1, equalFor([]int32{1, 2, 3}, []int32{1, 4, 3}))
	require.Equal(t, 2, equalFor([]int32{1, 2, 3}, []int32{1, 2}))
}

func TestFurthest(t *testing.T) {
	want := map[string][]float32{"a": {3, 4}, "b": {1}}
	worst, of, err := furthest(want, map[string][]float32{"a": {3, 4}, "b": {1.5}})
	require.NoError(t, err)
	require.InDelta(t, 0.5, worst, 1e-9)
	require.Equal(t, "b", of)
	worst, _, err = furthest(want, map[string][]float32{"a": {3, float32(math.NaN())}, "b": {1}})
	require.NoError(t, err)
	require.True(t, math.IsNaN(worst), "not a number is no agreement")
	_, _, err = furthest(want, map[string][]float32{"a": {3, 4}})
	require.ErrorContains(t, err, "gradients of 1 parameters for 2")
	_, _, err = furthest(want, map[string][]float32{"a": {3}, "b": {1}})
	require.ErrorContains(t, err, "a: a gradient of 1 numbers for 2")
}

func TestSizesAskedFor(t *testing.T) {
	l := &lab{o: options{device: torch.CUDA, sizes: []string{"4B"}, short: true}}
	got, err := l.sizes("0.6B", "4B")
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "4B", got[0].name)
	require.Equal(t, 2, got[0].micro)
	require.Equal(t, 4, qwen3[2].micro, "the table is as it was")
	_, err = l.smallest()
	require.True(t, bench.Skipped(err))
	for _, p := range []part{{"generate", generate}, {"tax", tax}, {"kill", kill}} {
		out := runPart(t.Context(), &lab{o: options{device: torch.CUDA, sizes: []string{"4B"}, limit: time.Minute}}, p)
		require.Equal(t, bench.StatusSkipped, out.Status, p.name)
		require.Contains(t, out.Why, "--sizes leaves out 0.6B")
	}
}
