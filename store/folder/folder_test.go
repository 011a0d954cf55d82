package folder_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/folder"
	"github.com/ropewalk/ropewalk/store/s3"
)

// The objects of a real server are the same when read through the server and from its folder.
func TestReadsWhatTheServerHolds(t *testing.T) {
	server := storetest.Versitygw(t)
	const bucket = "record"
	root := filepath.Join(server.Folder, bucket)
	require.NoError(t, os.Mkdir(root, 0o755))
	through, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: bucket, AccessKey: server.AccessKey,
		SecretKey: server.SecretKey})
	require.NoError(t, err)
	for key, size := range map[string]int{
		"runs/run=a/heads/step=1.json": 40, "runs/run=a/heads/step=10.json": 41, "runs/run=a.json": 0,
		"runs/run=a/big.bin": 17 << 20, "runs/run=ab/x": 1, "other": 3,
	} {
		require.NoError(t, through.Put(t.Context(), key, make([]byte, size)))
	}
	direct := folder.New(root)
	for _, prefix := range []string{"", "runs/", "runs/run=a", "runs/run=a/", "runs/run=a/heads/step=1", "runs/none/",
		"other/x"} {
		want, err := through.List(t.Context(), prefix)
		require.NoError(t, err)
		got, err := direct.List(t.Context(), prefix)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(time.Second)), "prefix %q",
			prefix)
		for _, o := range got {
			served, err := through.Get(t.Context(), o.Key)
			require.NoError(t, err)
			read, err := direct.Get(t.Context(), o.Key)
			require.NoError(t, err)
			require.Equal(t, served, read, o.Key)
			file, err := os.ReadFile(direct.File(o.Key))
			require.NoError(t, err)
			require.Equal(t, read, file)
		}
	}
	for _, key := range []string{"runs", "runs/run=a/heads/step=2.json", "other/x"} { // a folder, nothing, below a file
		_, err := direct.Get(t.Context(), key)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorContains(t, err, key)
	}
}

func TestRefuses(t *testing.T) {
	root := t.TempDir()
	outside := filepath.Join(filepath.Dir(root), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	s := folder.New(root)
	_, err := s.Get(t.Context(), "../outside")
	require.ErrorContains(t, err, "cannot name a file")
	require.ErrorIs(t, s.Put(t.Context(), "a", nil), folder.ErrReadOnly)
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "a", nil), folder.ErrReadOnly)
	require.ErrorIs(t, s.Delete(t.Context(), "a"), folder.ErrReadOnly)
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestAFolderThatIsNotThereIsEmpty(t *testing.T) {
	s := folder.New(filepath.Join(t.TempDir(), "none"))
	listed, err := s.List(t.Context(), "runs/")
	require.NoError(t, err)
	require.Empty(t, listed)
	_, err = s.Get(t.Context(), "runs/a")
	require.ErrorIs(t, err, store.ErrNotFound)
}
