package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExtract(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "engine")
	for range 2 {
		main, err := Extract(dir)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, "main.py"), main)
	}
	count := 0
	for name, content := range all() {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, content, got)
		count++
	}
	require.Greater(t, count, 10)
	entries, err := os.ReadDir(filepath.Join(dir, "ropewalk_engine"))
	require.NoError(t, err)
	require.Len(t, entries, count-2, "no temporary file is left")
	info, err := os.Stat(filepath.Join(dir, "main.py"))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "only the user reads them")
	require.Len(t, Digest(), 64)

	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	_, err = Extract(blocked)
	require.ErrorContains(t, err, "extract the engine")
}
