package activities_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

func newRecord(s store.Store) *commit.Writer { return commit.New(s) }

// forgeBatch replaces step 1's batch with one that other code would have made: the first row counts once more. The
// head names it.
func forgeBatch(t *testing.T, objects *mem.Store) {
	t.Helper()
	ctx := context.Background()
	record := newRecord(objects)
	place := schema.At("r", 1, schema.StageAdvantage)
	m, _, _, err := record.Lookup(ctx, place)
	require.NoError(t, err)
	rows, err := commit.Batch(ctx, record, m)
	require.NoError(t, err)
	rows[0].Count++
	info, err := commit.PutBatch(ctx, record, place, rows)
	require.NoError(t, err)
	m.Shards, m.Code = []schema.ShardInfo{info}, strings.Repeat("d", 64)
	data, err := schema.EncodeManifest(m)
	require.NoError(t, err)
	require.NoError(t, objects.Put(ctx, place.ManifestKey(), data))
	head, _, _, err := record.Head(ctx, "r", "1")
	require.NoError(t, err)
	head.Stages[schema.StageAdvantage] = []schema.Ref{{Key: place.ManifestKey(), Digest: schema.Digest(data)}}
	text, err := schema.EncodeHead(head)
	require.NoError(t, err)
	require.NoError(t, objects.Put(ctx, head.Key(), text))
}
