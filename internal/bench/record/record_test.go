package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/internal/python/pythontest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// TestComparesBothSides measures a small run once: each set has all comparisons, and their ratios are of this run.
func TestComparesBothSides(t *testing.T) {
	t.Setenv("ROPEWALK_PYTHON", pythontest.Need(t, "the comparison", "pyarrow"))
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	bucket := t.TempDir()
	recordtest.Unpack(t, objects, bucket)
	out := filepath.Join(t.TempDir(), "record.json")
	streamedBytes = 1 << 20
	require.NoError(t, run(t.Context(), []string{"-bucket", bucket, "-run", "r", "-rounds", "1", "-out", out}))
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	var got result
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, "r", got.Run)
	require.Greater(t, got.Shards, 2)
	require.Len(t, got.Lines, 12)
	for _, l := range got.Lines {
		require.Positive(t, l.Ours, l)
		require.Positive(t, l.Other, l)
		require.Positive(t, l.Ratio, l)
	}
	require.ErrorContains(t, run(t.Context(), []string{"-bucket", t.TempDir()}), "train one (make run)")
}
