package zygote

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A preferred interpreter comes before the usual ones, and one that is gone leaves them. A named one is the only one.
func TestThePreferredInterpreterComesFirst(t *testing.T) {
	usual, err := findPythons(t.Context(), Options{}, nil)
	require.NoError(t, err)
	made := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(made, []byte("#!/bin/sh\n"+
		`echo '{"executable": "/bin/sh", "path": ["/made"], "modules": ["numpy"]}'`+"\n"), 0o700))
	found, err := findPythons(t.Context(), Options{Preferred: made}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"/made"}, found[0].Path)
	require.Equal(t, usual, found[1:])
	found, err = findPythons(t.Context(), Options{Preferred: made + "-gone"}, nil)
	require.NoError(t, err)
	require.Equal(t, usual, found)
	found, err = findPythons(t.Context(), Options{Preferred: made, Python: usual[0].Executable}, nil)
	require.NoError(t, err)
	require.Equal(t, usual[0].Executable, found[0].Executable)
	require.Len(t, found, 1)
}
