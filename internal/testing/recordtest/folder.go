package recordtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/store"
)

// Unpack writes every object of a store into a folder, as a local S3 server keeps a bucket.
func Unpack(t testing.TB, objects store.Store, root string) {
	t.Helper()
	listed, err := objects.List(context.Background(), "")
	require.NoError(t, err)
	for _, o := range listed {
		data, err := objects.Get(context.Background(), o.Key)
		require.NoError(t, err)
		path := filepath.Join(root, o.Key)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
}
