package recordtest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/store/mem"
)

// Archived reads a packed record, such as that in analysis/testdata/records, into memory. A path in the archive is an
// object's key.
func Archived(t testing.TB, path string) *mem.Store {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	plain, err := gzip.NewReader(f)
	require.NoError(t, err)
	objects := mem.New()
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, objects.Put(t.Context(), header.Name, data))
	}
}
