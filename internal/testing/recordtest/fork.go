package recordtest

import (
	"context"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// Fork commits a fork of the run after a step, which has taken no step of its own yet.
func (r *Run) Fork(run string, step int) {
	ctx := context.Background()
	m := r.read(r.Prepare)
	m.Run = run
	m.Shards = []schema.ShardInfo{r.document(m.Place, r.recipe())}
	m.Note[schema.NoteFork] = schema.ForkPoint{Run: r.Options.Run, Step: step}.String()
	r.commit(m)
	entry, err := schema.Canonical(schema.CatalogueEntry{Run: run, Recipe: "fixture", Seed: r.Seed, Steps: r.Planned,
		Created: r.Created})
	require.NoError(r.t, err)
	require.NoError(r.t, r.Store.PutIfAbsent(ctx, schema.CatalogueKey(run), entry))
	for i := 1; i <= step; i++ {
		head, _, _, err := r.writer.Head(ctx, r.Options.Run, strconv.Itoa(i))
		require.NoError(r.t, err)
		require.NoError(r.t, r.writer.ShareHead(ctx, head.SharedBy(run)))
	}
}
