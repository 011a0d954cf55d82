package upkeep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// keeper commits updates without a policy and prunes after each update, as the steps of a run do.
type keeper struct {
	deps  *stage.Worker
	calls *faults.Store
	last  schema.Checkpoint
	// known and evaluated are what the workflow carries; forgets makes every pruning read the record instead.
	known     *api.Retention
	evaluated []api.EvaluatedStep
	forgets   bool
	// reference says which reference checkpoints are kept.
	reference *loss.ReferenceSettings
}

func newKeeper(rules ...faults.Rule) *keeper {
	objects := faults.New(mem.New(), rules...)
	return &keeper{deps: &stage.Worker{Records: record.Records{Store: objects, Record: commit.New(objects)}},
		calls: objects}
}

// step commits the update of a step, with a new checkpoint or with the one before it, and prunes.
func (k *keeper) step(t *testing.T, step int, changed bool, keep recipes.Checkpoint) []int {
	t.Helper()
	k.commit(t, step, changed)
	pruned, err := k.prune(step, keep)
	require.NoError(t, err)
	return pruned
}

// prune prunes for a step and keeps the returned state.
func (k *keeper) prune(step int, keep recipes.Checkpoint) ([]int, error) {
	in := api.PruneInput{Scope: api.Scope{Run: "run", Step: step}, Retention: k.known, Evaluated: k.evaluated}
	if k.forgets {
		in.Retention = nil
	}
	recipe := &recipes.Recipe{Checkpoint: keep, Loss: recipes.Loss{Terms: choice.Params{"reference": k.reference}}}
	pruned, known, err := prune(context.Background(), k.deps.Records, in, recipe, func(int, int) {})
	if err == nil {
		k.known, k.evaluated = &known, nil
	}
	return pruned, err
}

// commit commits the update of a step and its head.
func (k *keeper) commit(t *testing.T, step int, changed bool) {
	t.Helper()
	ctx := context.Background()
	place := schema.At("run", step, schema.StageUpdate)
	if changed {
		digest := fmt.Sprintf("%064x", step)
		prefix := place.CheckpointPrefix(enginepool.VersionName(step, digest))
		sum, err := k.deps.Record.Blob(ctx, prefix+"config.json", []byte{byte(step)})
		require.NoError(t, err)
		k.last = schema.Checkpoint{Prefix: prefix, Digest: digest,
			Files: []schema.CheckpointFile{{Name: "config.json", Digest: sum, Bytes: 1}}}
	}
	m := schema.NewManifest(place, strings.Repeat("c", 64), strings.Repeat("d", 64))
	m.Checkpoint = &k.last
	_, ref, _, err := k.deps.Record.Commit(ctx, m)
	require.NoError(t, err)
	head, err := schema.NewHead("run", strconv.Itoa(step), ref)
	require.NoError(t, err)
	_, _, _, err = k.deps.Record.CommitHead(ctx, head)
	require.NoError(t, err)
}

// evaluate commits an evaluation's manifest; prune reads only its statistic.
func (k *keeper) evaluate(t *testing.T, step int, success float64) {
	t.Helper()
	m := schema.NewManifest(schema.At("run", step, schema.StageEvaluate), strings.Repeat("c", 64),
		strings.Repeat("d", 64))
	m.Stats = map[string]float64{record.StatSuccess: success}
	_, _, _, err := k.deps.Record.Commit(context.Background(), m)
	require.NoError(t, err)
	k.evaluated = append(k.evaluated, api.EvaluatedStep{Step: step, Success: success})
}

func (k *keeper) present(t *testing.T) []int {
	t.Helper()
	prefixes, err := presentCheckpoints(context.Background(), k.deps.Records, "run")
	require.NoError(t, err)
	var steps []int
	for _, prefix := range prefixes {
		step, ok := prunable("run", prefix)
		require.True(t, ok, prefix)
		steps = append(steps, step)
	}
	return steps
}

// The checkpoints that a fork begins with stay until the fork is deleted.
func TestPruneKeepsWhatForksBeginWith(t *testing.T) {
	k, keep := newKeeper(), recipes.Checkpoint{KeepLast: 2}
	note := schema.ForkPoint{Run: "run", Step: 3}.ForkKey("fork")
	for step := 1; step <= 9; step++ {
		if step == 4 {
			require.NoError(t, k.deps.Store.Put(t.Context(), note, []byte("{}")))
		}
		if step == 8 {
			require.Equal(t, []int{2, 3, 6, 7}, k.present(t))
			require.NoError(t, k.deps.Store.Delete(t.Context(), note))
		}
		k.forgets = step == 6
		k.step(t, step, true, keep)
	}
	require.Equal(t, []int{8, 9}, k.present(t))
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

// A step that updates nothing shares its predecessor's checkpoint, which must then be kept longer than its own step.
func TestPruneKeepsACheckpointThatALaterStepStillHas(t *testing.T) {
	k := newKeeper()
	keep := recipes.Checkpoint{KeepLast: 1}
	var pruned [][]int
	for step, changed := range []bool{true, false, false, true, true, false} {
		pruned = append(pruned, k.step(t, step+1, changed, keep))
	}
	// Step 1's checkpoint is used until step 4 has its own; step 5's is also step 6's.
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

// The work of a pruning does not grow with the run: at step 494 it calls the store as often as at step 14, and its
// carried state has the same size.
func TestPruningCostsTheSameAtEveryStep(t *testing.T) {
	k := newKeeper()
	k.reference = &loss.ReferenceSettings{RefreshEvery: 10}
	keep := recipes.Checkpoint{Every: 20, KeepLast: 3, KeepBest: 2}
	calls, carried := map[int][]faults.Op{}, map[int]int{}
	for step := 1; step <= 500; step++ {
		k.commit(t, step, true)
		before := len(k.calls.Log())
		_, err := k.prune(step, keep)
		require.NoError(t, err)
		for _, call := range k.calls.Log()[before:] {
			calls[step] = append(calls[step], call.Op)
			if call.Op == faults.List && step > 1 {
				require.Equal(t, schema.ForksPrefix("run"), call.Key)
			}
		}
		carried[step] = len(k.known.Spared) + len(k.known.Best)
		k.evaluate(t, step, float64(step%10)/10)
	}
	require.NotEmpty(t, calls[14])
	require.Equal(t, calls[14], calls[494])
	require.Equal(t, carried[14], carried[494])
}

// A pruning that continues from the previous one keeps the same checkpoints as a pruning that reads the whole record.
func TestPruningFromTheRecordKeepsTheSame(t *testing.T) {
	for name, keep := range map[string]recipes.Checkpoint{
		"last":       {KeepLast: 2},
		"every":      {KeepLast: 1, Every: 3},
		"best":       {KeepLast: 2, KeepBest: 2},
		"all of it":  {KeepLast: 2, KeepBest: 1, Every: 5},
		"everything": {KeepLast: 50},
	} {
		t.Run(name, func(t *testing.T) {
			carries, reads := newKeeper(), newKeeper()
			reads.forgets = true
			for _, k := range []*keeper{carries, reads} {
				k.reference = &loss.ReferenceSettings{RefreshEvery: 4}
			}
			draw := rand.New(rand.NewPCG(1, uint64(keep.KeepLast)))
			for step := 1; step <= 40; step++ {
				changed, evaluated, success := step == 1 || draw.IntN(3) > 0, draw.IntN(2) > 0, draw.Float64()
				for _, k := range []*keeper{carries, reads} {
					k.step(t, step, changed, keep)
					if evaluated {
						k.evaluate(t, step, success)
					}
				}
				require.Equal(t, carries.present(t), reads.present(t), "step %d", step)
			}
		})
	}
}

// The next pruning does what a failed one has left undone, and it does not delete anything twice.
func TestPruningGoesOnAfterAFailure(t *testing.T) {
	keep := recipes.Checkpoint{KeepLast: 1}
	k := newKeeper(faults.Rule{Op: faults.Delete, Nth: 1})
	k.step(t, 1, true, keep)
	k.commit(t, 2, true)
	_, err := k.prune(2, keep)
	require.ErrorIs(t, err, faults.ErrInjected)
	require.Equal(t, []int{1, 2}, k.present(t))
	require.Equal(t, []int{1, 2}, k.step(t, 3, true, keep))
	require.Equal(t, []int{3}, k.present(t))

	k.known = nil // a resumed run
	before := len(k.calls.Log())
	require.Equal(t, []int{3}, k.step(t, 4, true, keep))
	deleted := slices.DeleteFunc(slices.Clone(k.calls.Log()[before:]),
		func(c faults.Call) bool { return c.Op != faults.Delete })
	require.Len(t, deleted, 1)
}

// A checkpoint of an attempt that did not win belongs to no step; pruning leaves it to the collection of orphans.
func TestPruningLeavesOrphansAlone(t *testing.T) {
	k := newKeeper()
	keep := recipes.Checkpoint{KeepLast: 1}
	k.commit(t, 1, true)
	orphan := schema.RunPrefix("run") + "checkpoints/000001-ffffffffffffffff/config.json"
	require.NoError(t, k.deps.Store.Put(t.Context(), orphan, []byte("x")))
	k.commit(t, 2, true)
	for range 2 {
		_, err := k.prune(2, keep)
		require.NoError(t, err)
	}
	_, err := k.deps.Store.Get(t.Context(), orphan)
	require.NoError(t, err)
}

// A rule changed by an amendment applies to all checkpoints that still exist.
func TestPruningFollowsAChangedRule(t *testing.T) {
	k := newKeeper()
	for step := 1; step <= 6; step++ {
		k.step(t, step, true, recipes.Checkpoint{KeepLast: 1, Every: 2})
	}
	require.Equal(t, []int{2, 4, 6}, k.present(t))
	k.step(t, 7, true, recipes.Checkpoint{KeepLast: 2})
	require.Equal(t, []int{6, 7}, k.present(t))
}

// The reference that a changed refresh_every asks for may have been pruned.
func TestAPrunedReferenceIsRefused(t *testing.T) {
	k := newKeeper()
	for step := 1; step <= 4; step++ {
		k.step(t, step, true, recipes.Checkpoint{KeepLast: 1})
	}
	refreshed := &recipes.Recipe{Loss: recipes.Loss{
		Terms: choice.Params{"reference": &loss.ReferenceSettings{RefreshEvery: 3}},
	}}
	_, err := k.deps.Reference(t.Context(), api.Scope{Run: "run", Step: 5}, refreshed)
	require.ErrorContains(t, err, "the reference of step 5 is the policy after step 3, whose checkpoint is pruned")

	held := newKeeper()
	held.reference = refreshed.Loss.Reference()
	for step := 1; step <= 4; step++ {
		held.step(t, step, true, recipes.Checkpoint{KeepLast: 1})
	}
	ref, err := held.deps.Reference(t.Context(), api.Scope{Run: "run", Step: 5}, refreshed)
	require.NoError(t, err)
	require.Equal(t, 3, ref.Step)
}
