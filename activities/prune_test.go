package activities

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// keeper commits updates without a policy and prunes after each, as the steps of a run do.
type keeper struct {
	deps *Deps
	last schema.Checkpoint
	// reference says which checkpoints are held on to.
	reference *method.Reference
}

func newKeeper() *keeper {
	objects := mem.New()
	return &keeper{deps: &Deps{Store: objects, Record: commit.New(objects)}}
}

// step commits the update of a step, with a new checkpoint or with the one before it, and prunes.
func (k *keeper) step(t *testing.T, step int, changed bool, keep recipes.Checkpoint) []int {
	t.Helper()
	ctx := context.Background()
	place := schema.At("run", step, schema.StageUpdate)
	if changed {
		digest := fmt.Sprintf("%064x", step)
		prefix := place.CheckpointPrefix(checkpointVersion(step, digest))
		sum, err := k.deps.Record.Blob(ctx, prefix+"config.json", []byte{byte(step)})
		require.NoError(t, err)
		k.last = schema.Checkpoint{Prefix: prefix, Digest: digest, Files: []schema.CheckpointFile{{Name: "config.json", Digest: sum, Bytes: 1}}}
	}
	m := schema.NewManifest(place, strings.Repeat("c", 64), strings.Repeat("d", 64))
	m.Checkpoint = &k.last
	_, ref, _, err := k.deps.Record.Commit(ctx, m)
	require.NoError(t, err)
	head, err := schema.NewHead("run", strconv.Itoa(step), ref)
	require.NoError(t, err)
	_, _, _, err = k.deps.Record.CommitHead(ctx, head)
	require.NoError(t, err)
	pruned, err := k.deps.prune(ctx, wire.Scope{Run: "run", Step: step}, &recipes.Recipe{Checkpoint: keep, Loss: recipes.Loss{Reference: k.reference}})
	require.NoError(t, err)
	return pruned
}

// evaluate commits an evaluation's manifest: prune reads its statistic alone.
func (k *keeper) evaluate(t *testing.T, step int, success float64) {
	t.Helper()
	m := schema.NewManifest(schema.At("run", step, schema.StageEvaluate), strings.Repeat("c", 64), strings.Repeat("d", 64))
	m.Stats = map[string]float64{statSuccess: success}
	_, _, _, err := k.deps.Record.Commit(context.Background(), m)
	require.NoError(t, err)
}

func (k *keeper) present(t *testing.T) []int {
	t.Helper()
	steps, err := k.deps.checkpointSteps(context.Background(), "run")
	require.NoError(t, err)
	return steps
}

func TestPruneKeepsWhatTheRecipeSays(t *testing.T) {
	for name, c := range map[string]struct {
		keep recipes.Checkpoint
		want []int
	}{
		"the last alone":        {recipes.Checkpoint{}, []int{9}},
		"the last three":        {recipes.Checkpoint{KeepLast: 3}, []int{7, 8, 9}},
		"every fourth":          {recipes.Checkpoint{Every: 4, KeepLast: 1}, []int{4, 8, 9}},
		"the two best":          {recipes.Checkpoint{KeepLast: 1, KeepBest: 2}, []int{3, 6, 9}},
		"the later of equals":   {recipes.Checkpoint{KeepLast: 1, KeepBest: 1}, []int{6, 9}},
		"more than there are":   {recipes.Checkpoint{KeepLast: 99}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"everything of the lot": {recipes.Checkpoint{Every: 5, KeepLast: 2, KeepBest: 1}, []int{5, 6, 8, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper()
			for step := 1; step <= 9; step++ {
				k.step(t, step, true, c.keep)
				switch step {
				case 3, 6:
					k.evaluate(t, step, 0.5)
				case 4:
					k.evaluate(t, step, 0.25)
				}
			}
			require.Equal(t, c.want, k.present(t))
		})
	}
}

// A step that updates nothing has its predecessor's checkpoint: it must outlive that step's own turn.
func TestPruneKeepsACheckpointThatALaterStepStillHas(t *testing.T) {
	k := newKeeper()
	keep := recipes.Checkpoint{KeepLast: 1}
	var pruned [][]int
	for step, changed := range []bool{true, false, false, true, true, false} {
		pruned = append(pruned, k.step(t, step+1, changed, keep))
	}
	// Step 1's is used until step 4 has its own; step 5's is step 6's as well.
	require.Equal(t, [][]int{nil, nil, nil, {1}, {4}, nil}, pruned)
	require.Equal(t, []int{5}, k.present(t))
	objects, err := k.deps.Store.List(context.Background(), k.last.Prefix)
	require.NoError(t, err)
	require.Len(t, objects, 1)
}

func TestPrunedCheckpointLeavesANote(t *testing.T) {
	k := newKeeper()
	k.step(t, 1, true, recipes.Checkpoint{KeepLast: 1})
	first := k.last
	k.step(t, 2, true, recipes.Checkpoint{KeepLast: 1})
	objects, err := k.deps.Store.List(context.Background(), first.Prefix)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	require.Equal(t, first.Prefix+schema.PrunedFile, objects[0].Key)
	text, err := k.deps.Store.Get(context.Background(), objects[0].Key)
	require.NoError(t, err)
	require.Contains(t, string(text), first.Digest)
	require.True(t, slices.Contains(k.present(t), 2))
}
