package activities_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// forgeBatch replaces step 1's batch with one that other code would have made: the first row counts once more. The
// head names it.
func forgeBatch(t *testing.T, objects *mem.Store) {
	t.Helper()
	record := commit.New(objects)
	place := schema.At("r", 1, schema.StageAdvantage)
	m, _, _, err := record.Lookup(t.Context(), place)
	require.NoError(t, err)
	rows, err := commit.Batch(t.Context(), record, m)
	require.NoError(t, err)
	rows[0].Count++
	encoded, err := schema.EncodeBatch(rows)
	require.NoError(t, err)
	info, err := record.Shard(t.Context(), place, schema.Batch, encoded, len(rows))
	require.NoError(t, err)
	m.Shards, m.Code = []schema.ShardInfo{info}, strings.Repeat("d", 64)
	data, err := schema.EncodeManifest(m)
	require.NoError(t, err)
	require.NoError(t, objects.Put(t.Context(), place.ManifestKey(), data))
	head, _, _, err := record.Head(t.Context(), "r", "1")
	require.NoError(t, err)
	head.Stages[schema.StageAdvantage] = []schema.Ref{{Key: place.ManifestKey(), Digest: schema.Digest(data)}}
	text, err := schema.EncodeHead(head)
	require.NoError(t, err)
	require.NoError(t, objects.Put(t.Context(), head.Key(), text))
}
