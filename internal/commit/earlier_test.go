package commit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// What an earlier version committed under its own name of a stage is found and adopted.
func TestEarlierNamesAreAdopted(t *testing.T) {
	w := commit.New(mem.New())
	today := schema.At("quick-1", 3, schema.StageLogprobs)
	_, _, found, err := w.Lookup(t.Context(), today)
	require.NoError(t, err)
	require.False(t, found)

	earlier, ok := today.ByEarlierName()
	require.True(t, ok)
	_, ref, adopted, err := w.Commit(t.Context(), schema.NewManifest(earlier, code, config))
	require.NoError(t, err)
	require.False(t, adopted)
	require.Equal(t, earlier.ManifestKey(), ref.Key)

	m, looked, found, err := w.Lookup(t.Context(), today)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, ref, looked)
	require.Equal(t, earlier, m.Place)

	_, again, adopted, err := w.Commit(t.Context(), schema.NewManifest(today, code, config))
	require.NoError(t, err)
	require.True(t, adopted)
	require.Equal(t, ref, again, "the stage has one manifest")
}
