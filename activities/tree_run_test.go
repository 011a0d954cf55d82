package activities_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// branching makes the samples of tiny's prompts the leaves of trees.
var branching = []string{"steps=2", "rollout.samples_per_prompt=6", "rollout.tree={rule: aepo, roots: 2}",
	"resample={vspo: null, roc: null}", "rollout.max_turns=3"}

// A run with trees gives the same record in both modes, and again if a worker dies at a commit in the middle of a tree:
// of the monitor, of the roots with their branches, of tool calls. Neither the batches of a shard nor the name of the
// mode have an influence.
func TestTreesInBothModes(t *testing.T) {
	plain := newBench(t, mem.New())
	want := trainTiny(t, plain, "r", append([]string{"rollout.mode=staged"}, branching...)...)
	leaves := treesOf(t, plain.store, 1)
	require.Positive(t, leaves[schema.RoleBranch])
	require.Positive(t, leaves[schema.RoleRoot])
	require.Zero(t, leaves[schema.RoleMonitor], "it is no trajectory")

	for i, mode := range []string{"staged", "interleaved", "tree"} {
		var rules []faults.Rule
		for _, place := range []schema.Place{
			schema.At("r", 1, schema.StageRollout).WithTurn(i), schema.At("r", 1, schema.StageRollout).WithTurn(4),
			schema.At("r", 2, schema.StageSandbox).WithTurn(3),
		} {
			rules = append(rules, faults.Rule{Op: faults.PutIfAbsent, Key: place.WithShard(0).ManifestKey(), Nth: 1,
				Effect: faults.Fail})
		}
		objects := faults.New(mem.New(), rules...)
		again := newBench(t, objects)
		got := trainTiny(t, again, "r", append([]string{"rollout.mode=" + mode}, branching...)...)
		require.Equal(t, want.Policy.Digest, got.Policy.Digest, mode)
		require.Equal(t, rowsOf(t, plain.store), rowsOf(t, again.store))
		for _, r := range rules {
			require.GreaterOrEqual(t, objects.Count(faults.PutIfAbsent, r.Key), 2, "%s: made again", r.Key)
		}
	}
	apart := newBench(t, mem.New())
	got := trainTiny(t, apart, "r", append([]string{"rollout.shard_groups=1"}, branching...)...)
	require.Equal(t, want.Policy.Digest, got.Policy.Digest, "every group in a shard of its own")
}

// treesOf checks the trees of a step, and counts the trajectories by role.
func treesOf(t *testing.T, objects store.Store, step int) map[string]int {
	t.Helper()
	branches := stepRows[schema.BranchRow](t, objects, "r", step, schema.StageRollout)
	turns := stepRows[schema.TurnRow](t, objects, "r", step, schema.StageRollout)
	require.Len(t, branches, len(turns), "one row for each turn")
	role := map[string]string{}
	for _, b := range branches {
		role[b.TrajectoryID] = b.Role
	}
	whole := map[string]int{}
	for _, r := range schema.Inherit(turns, branches) {
		whole[r.TrajectoryID]++
	}
	trajectories := stepRows[schema.TrajectoryRow](t, objects, "r", step, schema.StageAssemble)
	count, groups := map[string]int{}, map[string]int{}
	for _, r := range trajectories {
		count[role[r.TrajectoryID]]++
		groups[r.GroupID]++
		require.EqualValues(t, r.Turns, whole[r.TrajectoryID], r.TrajectoryID)
	}
	for group, n := range groups {
		require.Equal(t, 6, n, group)
	}
	rows := stepBatch(t, objects, "r", step)
	tokens := map[string]int32{}
	for _, r := range trajectories {
		tokens[r.TrajectoryID] = r.Tokens
	}
	for _, r := range rows {
		require.Len(t, r.TokenIDs, int(tokens[r.TrajectoryID]), "rows of the batch are whole trajectories")
	}
	return count
}

// Shared tokens have the mean of the leaves' advantages, in every leaf or in one of them.
func TestSharedPrefixes(t *testing.T) {
	advantages := map[string]map[string][]float32{}
	masks := map[string]int{}
	var branches []schema.BranchRow
	var turns []schema.TurnRow
	for _, prefixes := range []string{"per_leaf", "mean_per_leaf", "mean_once"} {
		b := newBench(t, mem.New())
		trainTiny(t, b, "r", append([]string{"steps=1", "advantage.prefixes=" + prefixes}, branching[1:]...)...)
		advantages[prefixes] = map[string][]float32{}
		for _, r := range stepBatch(t, b.store, "r", 1) {
			advantages[prefixes][r.TrajectoryID] = r.Advantages
			for _, m := range r.LossMask {
				masks[prefixes] += int(m)
			}
		}
		branches = stepRows[schema.BranchRow](t, b.store, "r", 1, schema.StageRollout)
		turns = stepRows[schema.TurnRow](t, b.store, "r", 1, schema.StageRollout)
	}
	require.Equal(t, masks["per_leaf"], masks["mean_per_leaf"])
	type token struct {
		owner    string
		turn, at int
	}
	lineage := schema.LineageOf(branches)
	sums, counts, written := map[token]float32{}, map[token]float32{}, map[token]bool{}
	each := func(values map[string][]float32, visit func(token, float32)) {
		byID := map[string][]schema.TurnRow{}
		for _, r := range schema.Inherit(turns, branches) {
			byID[r.TrajectoryID] = append(byID[r.TrajectoryID], r)
		}
		for id, list := range values {
			own := byID[id]
			slices.SortFunc(own, func(a, b schema.TurnRow) int { return int(a.Turn - b.Turn) })
			for _, r := range own {
				for k, m := range r.LossMask {
					if m == 1 {
						visit(token{lineage.Owner(id, r.Turn), int(r.Turn), k}, list[k])
					}
				}
				list = list[len(r.LossMask):]
			}
			require.Empty(t, list)
		}
	}
	each(advantages["per_leaf"], func(k token, a float32) { sums[k] += a; counts[k]++ })
	shared := 0
	each(advantages["mean_per_leaf"], func(k token, a float32) {
		require.InDelta(t, sums[k]/counts[k], a, 1e-5, fmt.Sprint(k))
		if counts[k] > 1 {
			shared++
		}
		written[k] = true
	})
	require.Positive(t, shared)
	require.Equal(t, len(written), masks["mean_once"], "each token is learnt from once")
	once := map[token]float32{}
	each(advantages["mean_once"], func(k token, a float32) { once[k] += a })
	for k, sum := range once {
		require.InDelta(t, sums[k]/counts[k], sum, 1e-5, fmt.Sprint(k))
	}
}
