// Package golden compares the output of tests with files that a person has read and found correct.
package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// Check compares text with the file testdata/name of the test's package. If update is set (the test's flag -update), it
// writes the file first.
func Check(t *testing.T, name, text string, update bool) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if d := cmp.Diff(string(want), text); d != "" {
		t.Errorf("%s: -want +got:\n%s", path, d)
	}
}
