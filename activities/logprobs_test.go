package activities_test

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// recomputing makes the tests' recipe recompute, keep a reference, and take four steps on a batch.
var recomputing = []string{
	"steps=2", "loss.old_log_probs=recompute", "loss.kl={estimator: k3, coefficient: 0.05}", "loss.entropy=0.001",
	"loss.tis={cap: 2}",
	"token_outputs.entropies=true", "optimizer.minibatches=2", "optimizer.epochs=2",
}

// trainTiny trains in a bench; all such runs share their warm start.
func trainTiny(t *testing.T, b *bench, run string, set ...string) workflows.TrainRunResult {
	t.Helper()
	out, err := trainTinyError(t, b, run, set...)
	require.NoError(t, err)
	return out
}

// trainTinyError is trainTiny for runs that may fail.
func trainTinyError(t *testing.T, b *bench, run string, set ...string) (workflows.TrainRunResult, error) {
	t.Helper()
	// Its policy is sometimes right, so that there is a batch.
	recipe, err := os.ReadFile("../test/e2e/testdata/tiny.yaml")
	require.NoError(t, err)
	set = append(set, "evaluation.problems=3", "evaluation.greedy=false")
	lendWarmStarts(t, b.store)
	out, err := b.train(t, workflows.TrainRunInput{Run: run, RecipeYAML: string(recipe), Set: set})
	if err == nil {
		keepWarmStarts(t, b.store)
	}
	return out, err
}

// stepRows reads a table of a stage that a step's head names.
func stepRows[R schema.Row](t *testing.T, objects store.Store, run string, step int, stage string) []R {
	t.Helper()
	ctx := context.Background()
	record := commit.New(objects)
	head, _, found, err := record.Head(ctx, run, schema.At(run, step, stage).Step)
	require.NoError(t, err)
	require.True(t, found)
	require.NotEmpty(t, head.Stages[stage], stage)
	var manifests []schema.Manifest
	for _, ref := range head.Stages[stage] {
		m, err := record.Read(ctx, ref)
		require.NoError(t, err)
		manifests = append(manifests, m)
	}
	rows, err := commit.Rows[R](ctx, record, manifests...)
	require.NoError(t, err)
	return rows
}

func stepBatch(t *testing.T, objects store.Store, run string, step int) []schema.BatchRow {
	t.Helper()
	record := commit.New(objects)
	m, _, found, err := record.Lookup(context.Background(), schema.At(run, step, schema.StageAdvantage))
	require.NoError(t, err)
	require.True(t, found)
	rows, err := commit.Batch(context.Background(), record, m)
	require.NoError(t, err)
	return rows
}

func checkpointDigest(t *testing.T, objects store.Store, place schema.Place) string {
	t.Helper()
	m, _, found, err := commit.New(objects).Lookup(context.Background(), place)
	require.NoError(t, err)
	require.True(t, found)
	return m.Checkpoint.Digest
}

// apart is the greatest distance between two lists under a mask.
func apart(t *testing.T, a, b []float32, mask []int32) float64 {
	t.Helper()
	require.Len(t, b, len(a))
	most := 0.0
	for i, m := range mask {
		if m == 1 {
			most = math.Max(most, math.Abs(float64(a[i])-float64(b[i])))
		}
	}
	return most
}

func TestForward(t *testing.T) {
	objects := mem.New()
	b := newBench(t, objects)
	trainTiny(t, b, "r", recomputing...)
	warm := checkpointDigest(t, objects, schema.AtInit("r", schema.StageWarmStart))
	for step := 1; step <= 2; step++ {
		before := warm
		if step > 1 {
			before = checkpointDigest(t, objects, schema.At("r", step-1, schema.StageUpdate))
		}
		checkOutputs(t, objects, step, before, warm)
	}
	t.Run("replays", func(t *testing.T) {
		replaysOfOutputs(t, func() *mem.Store { return copied(t, objects) })
	})
	t.Run("without the settings nothing is computed", func(t *testing.T) {
		trainTiny(t, b, "plain", "steps=1")
		for _, key := range keys(t, objects) {
			if strings.HasPrefix(key, schema.RunPrefix("plain")) {
				require.NotContains(t, key, "/logprobs/")
				require.NotContains(t, key, "token_outputs")
			}
		}
		for _, row := range stepBatch(t, objects, "plain", 1) {
			require.NotNil(t, row.OldLogProbs)
			require.Nil(t, row.RolloutLogProbs)
			require.Nil(t, row.ReferenceLogProbs)
		}
		for _, u := range stepRows[schema.UpdateRow](t, objects, "plain", 1, schema.StageUpdate) {
			require.Nil(t, u.ReferenceKL)
		}
	})
	t.Run("a reference that is refreshed", func(t *testing.T) { refreshed(t, b) })
}

// checkOutputs checks one step's outputs against its rollout, selection, batch and update.
func checkOutputs(t *testing.T, objects store.Store, step int, before, reference string) {
	t.Helper()
	outputs := map[string]schema.TokenOutputsRow{}
	for _, o := range stepRows[schema.TokenOutputsRow](t, objects, "r", step, schema.StageLogprobs) {
		outputs[o.TrajectoryID] = o
		require.Equal(t, before, o.PolicyVersion)
		require.Equal(t, reference, o.ReferenceVersion)
		require.Empty(t, o.CriticVersion)
		require.Nil(t, o.Values)
	}
	kept := 0
	for _, s := range stepRows[schema.SelectionRow](t, objects, "r", step, schema.StageResample) {
		if s.Kept {
			kept++
			require.Contains(t, outputs, s.TrajectoryID)
		}
	}
	require.Positive(t, kept)
	require.Len(t, outputs, kept)

	entropies := map[string][]float32{}
	// The rows are sorted by trajectory, then by turn.
	for _, turn := range stepRows[schema.TurnRow](t, objects, "r", step, schema.StageRollout) {
		entropies[turn.TrajectoryID] = append(entropies[turn.TrajectoryID], turn.Entropies...)
	}
	moved := 0.0
	for _, row := range stepBatch(t, objects, "r", step) {
		o := outputs[row.TrajectoryID]
		require.Equal(t, o.OldLogProbs, row.OldLogProbs)
		require.Equal(t, o.ReferenceLogProbs, row.ReferenceLogProbs)
		require.LessOrEqual(t, apart(t, row.OldLogProbs, row.RolloutLogProbs, row.LossMask), 1e-5,
			"the engine that learns agrees with the one that generated")
		require.LessOrEqual(t, apart(t, o.Entropies, entropies[row.TrajectoryID], row.LossMask), 1e-5)
		moved = math.Max(moved, apart(t, row.OldLogProbs, row.ReferenceLogProbs, row.LossMask))
		for i, m := range row.LossMask {
			if m == 0 {
				require.Zero(t, o.OldLogProbs[i])
				require.Zero(t, o.Entropies[i])
			}
		}
	}
	require.Equal(t, before != reference, moved > 0, "the policy moves away from the reference")

	updates := stepRows[schema.UpdateRow](t, objects, "r", step, schema.StageUpdate)
	require.Len(t, updates, 4, "two epochs of two mini-batches")
	for i, u := range updates {
		require.Equal(t, int32(i), u.Minibatch)
		require.NotNil(t, u.ReferenceKL)
		require.Equal(t, i > 0 || before != reference, *u.ReferenceKL > 1e-9, "update %d: %g", i, *u.ReferenceKL)
	}
}

func replaysOfOutputs(t *testing.T, copyRecord func() *mem.Store) {
	t.Run("unchanged inputs give the same digests", func(t *testing.T) {
		objects := copyRecord()
		out, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Step: 2, From: "reward"})
		require.NoError(t, err)
		for _, s := range out.Stages {
			require.True(t, s.Same, s.Stage)
		}
	})
	t.Run("a trajectory that only the replay keeps has no outputs", func(t *testing.T) {
		objects := copyRecord()
		in := workflows.ReplayStageInput{Run: "r", Step: 2, From: "resample", Set: []string{"resample.roc=null"}}
		_, err := runReplay(t, objects, in)
		require.ErrorContains(t, err, "was not kept when the step's forward pass ran")
		require.ErrorContains(t, err, "replay through resample alone")
		in.Through = "resample"
		out, err := runReplay(t, objects, in)
		require.NoError(t, err)
		require.False(t, out.Stages[0].Same)
	})
	t.Run("logprobs itself needs the engine", func(t *testing.T) {
		_, err := runReplay(t, copyRecord(), workflows.ReplayStageInput{Run: "r", Step: 2, From: "logprobs"})
		require.ErrorContains(t, err, "logprobs cannot be replayed: it needs the engine")
		_, err = runReplay(t, copyRecord(), workflows.ReplayStageInput{Run: "r", Step: 2, From: "advantage",
			Set: []string{"loss.old_log_probs=rollout"}})
		require.ErrorContains(t, err, "no replayed stage reads it")
	})
	t.Run("check", func(t *testing.T) {
		out, err := runReplay(t, copyRecord(), workflows.ReplayStageInput{Run: "r", Check: true})
		require.NoError(t, err)
		require.Equal(t, 8, out.Check.Shards, "of two steps")
		require.Empty(t, out.Check.Differs)
	})
}

// refreshed: the reference is the policy of an earlier step, whose checkpoint is kept longer than others. The
// penalty's coefficient in the loss follows the divergence from it, and each step commits the next step's
// coefficient.
func refreshed(t *testing.T, b *bench) {
	trainTiny(t, b, "refreshed", "steps=3",
		"loss.kl={coefficient: 2, controller: adaptive, target: 0.001, horizon: 100}", "loss.reference.refresh_every=2",
		"checkpoint.keep_last=1")
	second := checkpointDigest(t, b.store, schema.At("refreshed", 2, schema.StageUpdate))
	for step, want := range map[int]string{1: checkpointDigest(t, b.store,
		schema.AtInit("refreshed", schema.StageWarmStart)), 3: second} {
		for _, o := range stepRows[schema.TokenOutputsRow](t, b.store, "refreshed", step, schema.StageLogprobs) {
			require.Equal(t, want, o.ReferenceVersion, "step %d", step)
			require.Nil(t, o.OldLogProbs)
		}
	}
	beta := 2.0
	for step := 1; step <= 3; step++ {
		beta = steered(t, b.store, step, beta)
	}
	checked(t, b.store, "refreshed")
}

// steered checks one step's penalty against the expected coefficient, and returns the next coefficient.
func steered(t *testing.T, objects store.Store, step int, beta float64) float64 {
	t.Helper()
	m := manifestAt(t, objects, schema.At("refreshed", step, schema.StageAdvantage))
	require.Equal(t, beta, m.Stats["kl_coefficient"], "step %d", step)
	next := beta * (1 + min(max(m.Stats["kl"]/0.001-1, -0.2),
		0.2)*float64(len(stepBatch(t, objects, "refreshed", step)))/100)
	require.InDelta(t, next, m.Stats["kl_coefficient_next"], 1e-12)
	require.NotEqual(t, beta, next)
	apart := step == 2 // the reference is one step older than the policy that samples
	require.Equal(t, apart, m.Stats["kl"] > 1e-6)
	update := stepRows[schema.UpdateRow](t, objects, "refreshed", step, schema.StageUpdate)[0]
	if apart {
		tokens, gain := 0.0, 0.0
		for _, row := range stepBatch(t, objects, "refreshed", step) {
			for i, mask := range row.LossMask {
				tokens += float64(mask) * float64(row.Count)
				gain += float64(mask) * float64(row.Advantages[i])
			}
		}
		// All ratios are 1, so the surrogate is minus the mean advantage.
		require.InEpsilon(t, beta, (update.Loss+gain/tokens) / *update.ReferenceKL, 0.01)
	}
	return next
}
