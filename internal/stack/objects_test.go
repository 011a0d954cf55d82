package stack

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
	"github.com/stretchr/testify/require"
)

// The local S3 server takes the environment that the stack gives to workers, honours conditional
// puts in the bucket that is a plain folder, and keeps objects over a restart; with metadata in
// extended attributes, and in the folder that replaces them where a file system has none.
func TestObjects(t *testing.T) {
	needServers(t)
	for _, sidecar := range []bool{false, true} {
		root := t.TempDir()
		if sidecar {
			require.NoError(t, os.Mkdir(layout{root}.s3Sidecar(), 0o755))
		}
		const key = "runs/run=a/manifest.json"
		for try := range 2 {
			lease, _ := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
			s := openStore(t, lease.Addresses())
			err := s.PutIfAbsent(context.Background(), key, []byte{byte(try)})
			if try == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, store.ErrExists)
			}
			got, err := s.Get(context.Background(), key)
			require.NoError(t, err)
			require.Equal(t, []byte{0}, got)
			plain, err := os.ReadFile(filepath.Join(lease.Addresses().S3Folder, DefaultBucket, key))
			require.NoError(t, err)
			require.Equal(t, got, plain, "any tool can read the folder")
			require.NoError(t, lease.Close())
		}
		entries, err := os.ReadDir(root)
		require.NoError(t, err)
		_, err = os.Stat(layout{root}.s3Sidecar())
		require.Equal(t, sidecar || !hasXattrs(root), err == nil, "%v", entries)
	}
}

func openStore(t *testing.T, a Addresses) store.Store {
	t.Helper()
	s, err := s3.New(s3.Options{Endpoint: a.S3Endpoint, Region: a.Region, Bucket: a.S3Bucket, AccessKey: a.AccessKey,
		SecretKey: a.SecretKey})
	require.NoError(t, err)
	return s
}
