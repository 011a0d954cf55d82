package analysis_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

func openCache(t *testing.T) *analysis.Cache {
	t.Helper()
	c, err := analysis.OpenCache(filepath.Join(t.TempDir(), "deep", "cache"))
	require.NoError(t, err)
	return c
}

func TestCachePutFindGet(t *testing.T) {
	c := openCache(t)
	data := []byte("a shard")
	digest := schema.Digest(data)
	_, ok := c.Find(digest, "parquet", 7)
	require.False(t, ok)
	path, err := c.Put(digest, "parquet", data)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(c.Dir(), digest[:2], digest+".parquet"), path)
	_, err = c.Put(digest, "parquet", data)
	require.NoError(t, err, "again is harmless")
	found, ok := c.Find(digest, "parquet", 7)
	require.True(t, ok)
	require.Equal(t, path, found)
	got, ok := c.Get(digest, "parquet")
	require.True(t, ok)
	require.Equal(t, data, got)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o444), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

func TestCacheRefusesOtherBytes(t *testing.T) {
	c := openCache(t)
	digest := schema.Digest([]byte("right"))
	_, err := c.Put(digest, "json", []byte("wrong"))
	require.ErrorContains(t, err, digest)
	path, err := c.Put(digest, "json", []byte("right"))
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o644))
	require.NoError(t, os.WriteFile(path, []byte("rotten"), 0o644))
	_, ok := c.Get(digest, "json")
	require.False(t, ok, "bytes are checked")
	_, ok = c.Find(digest, "json", 5)
	require.False(t, ok, "a file of another size is not the object")
	_, err = c.Put(digest, "json", []byte("right"))
	require.NoError(t, err)
	_, ok = c.Get(digest, "json")
	require.True(t, ok)
}

func TestCacheTrimsWhatWasUsedLongestAgo(t *testing.T) {
	c := openCache(t)
	now := time.Now()
	put := func(text string, age time.Duration) string {
		path, err := c.Put(schema.Digest([]byte(text)), "json", []byte(text))
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
		return path
	}
	oldest, older, recent := put("1111", 4*time.Hour), put("2222", 3*time.Hour), put("3333", time.Minute)
	require.NoError(t, c.Trim(12, now))
	require.FileExists(t, oldest)
	require.NoError(t, c.Trim(9, now))
	require.NoFileExists(t, oldest)
	require.FileExists(t, older)
	require.NoError(t, c.Trim(0, now))
	require.NoFileExists(t, older)
	require.FileExists(t, recent, "another process may be reading it")
	_, ok := c.Find(schema.Digest([]byte("3333")), "json", 4)
	require.True(t, ok)
}
