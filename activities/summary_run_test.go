package activities_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// summing makes tiny's policy write a summary after every call.
var summing = []string{"steps=2", "rollout.prompts=4", "rollout.shard_groups=2", "layout=turns",
	"rollout.summary={every: 1, max_tokens: 24}",
	"rollout.max_tokens=190", "resample={dynamic: {tries: 1}}"}

// A run of questions with summaries gives the same record in both modes, and the same again if a worker dies at the
// commit of a summary.
func TestSummariesInBothModes(t *testing.T) {
	plain := newBench(t, mem.New())
	want := trainTiny(t, plain, "r", append([]string{"rollout.mode=staged"}, summing...)...)
	summaries := 0
	for _, r := range stepRows[schema.TurnRow](t, plain.store, "r", 2, schema.StageRollout) {
		if require.Equal(t, r.Turn == 1 || r.Turn == 3, r.IsSummary()); r.IsSummary() {
			summaries++
			require.Zero(t, r.ToolCalls)
		}
	}
	require.Positive(t, summaries)
	trained := 0
	for _, row := range stepBatch(t, plain.store, "r", 2) {
		if *row.Turn == 1 || *row.Turn == 3 {
			require.NotEmpty(t, row.OldLogProbs)
			trained++
		}
	}
	require.Positive(t, trained, "summaries are in the batch")

	for _, mode := range []string{"staged", "interleaved"} {
		place := schema.At("r", 1, schema.StageRollout).WithTurn(1).WithShard(0).ManifestKey()
		objects := faults.New(mem.New(), faults.Rule{Op: faults.PutIfAbsent, Key: place, Nth: 1, Effect: faults.Fail})
		again := newBench(t, objects)
		got := trainTiny(t, again, "r", append([]string{"rollout.mode=" + mode}, summing...)...)
		require.Equal(t, want.Policy.Digest, got.Policy.Digest, mode)
		require.Equal(t, rowsOf(t, plain.store), rowsOf(t, again.store))
		require.GreaterOrEqual(t, objects.Count(faults.PutIfAbsent, place), 2, "the summary is made again")
	}
}

// rowsOf lists the objects of the run r, without the documents, which hold the recipe's mode.
func rowsOf(t *testing.T, objects store.Store) []string {
	t.Helper()
	return slices.DeleteFunc(dataDigests(t.Context(), t, objects, "r"), func(s string) bool {
		return strings.HasPrefix(s, "table=documents/")
	})
}
