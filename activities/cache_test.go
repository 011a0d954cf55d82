package activities_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// A worker with a read cache asks the store for each data shard only once, to verify it. A worker without a cache
// computes the same policy.
func TestEachShardIsFetchedOnce(t *testing.T) {
	policies := map[bool]string{}
	for _, cached := range []bool{true, false} {
		objects := faults.New(mem.New())
		b := newBench(t, objects)
		if cached {
			activities.UseRecord(b.deps, b.deps.Record.WithCache(commit.NewCache(64<<20)))
		}
		result, err := b.train(t, workflows.TrainRunInput{Run: "a", Recipe: "quickstart", Set: small})
		require.NoError(t, err)
		policies[cached] = result.Policy.Digest

		calls, shards := map[faults.Op]int{}, map[string]int{}
		for _, c := range objects.Log() {
			calls[c.Op]++
			if c.Op == faults.Get && strings.Contains(c.Key, "/table=") {
				shards[c.Key]++
			}
		}
		require.NotEmpty(t, shards)
		most := 0
		for key, n := range shards {
			most = max(most, n)
			if cached {
				require.Equal(t, 1, n, "%s was fetched again", key)
			}
		}
		if !cached {
			require.Greater(t, most, 1, "the cache has nothing to save here")
		}
		t.Logf("cached %t: %d shards, calls %v, cache %+v", cached, len(shards), calls, b.deps.Record.CacheStats())
	}
	require.Equal(t, policies[false], policies[true])
}
