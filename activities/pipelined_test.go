package activities_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

var pipelined = []string{"steps=4", "pipeline.max_staleness=2", "loss.old_log_probs=recompute", "loss.tis={}"}

// policies are the digests of a run's policies: that of its warm start, then one for each step.
func policies(t *testing.T, objects store.Store, run string, steps int) []string {
	t.Helper()
	out := []string{checkpointDigest(t, objects, schema.AtInit(run, schema.StageWarmStart))}
	for step := 1; step <= steps; step++ {
		out = append(out, checkpointDigest(t, objects, schema.At(run, step, schema.StageUpdate)))
	}
	return out
}

// A pipelined run samples from the policy that is two updates old and learns with the log-probabilities of the newest.
// However it is interrupted, it makes the same rows.
func TestAPipelinedRun(t *testing.T) {
	objects := mem.New()
	staged := append([]string{"rollout.mode=staged", "checkpoint.keep_last=9"}, pipelined...)
	result := trainTiny(t, newBench(t, objects), "r", staged...)
	made := policies(t, objects, "r", 4)
	require.Equal(t, made[4], result.Policy.Digest)
	for step := 1; step <= 4; step++ {
		for _, row := range stepRows[schema.TurnRow](t, objects, "r", step, schema.StageRollout) {
			require.Equal(t, made[max(step-3, 0)], row.PolicyVersion, "step %d", step)
			require.EqualValues(t, min(2, step-1), *row.Lag, "step %d", step)
		}
		for _, row := range stepRows[schema.TokenOutputsRow](t, objects, "r", step, schema.StageLogprobs) {
			require.Equal(t, made[step-1], row.PolicyVersion, "step %d", step)
		}
	}
	require.NotEqual(t, made[1], made[0], "an update has changed the policy, so that the versions differ")
	t.Run("interleaved", func(t *testing.T) {
		other := mem.New()
		trainTiny(t, newBench(t, other), "r", append([]string{"rollout.mode=interleaved", "checkpoint.keep_last=1"},
			pipelined...)...)
		require.Equal(t, made, policies(t, other, "r", 4))
		requireKept(t, other)
		for step := 1; step <= 4; step++ {
			require.Equal(t, stepBatch(t, objects, "r", step), stepBatch(t, other, "r", step))
		}
	})
	t.Run("resumed", func(t *testing.T) {
		other := rewound(t, objects, 2, true)
		out, err := newBench(t, other).train(t, workflows.TrainRunInput{Run: "r", Resume: true})
		require.NoError(t, err)
		require.Equal(t, result.Policy.Digest, out.Policy.Digest)
		require.Equal(t, made, policies(t, other, "r", 4))
	})
	t.Run("without a lag it is another run", func(t *testing.T) {
		other, short := mem.New(), append(append([]string{}, pipelined...), "steps=2")
		trainTiny(t, newBench(t, other), "r", append(short[:len(short):len(short)], "pipeline.max_staleness=0")...)
		require.Equal(t, made[0], policies(t, other, "r", 2)[0])
		require.NotEqual(t, made[2], policies(t, other, "r", 2)[2])
		third := mem.New()
		trainTiny(t, newBench(t, third), "r", append(short[:len(short):len(short)], "pipeline=null")...)
		require.Equal(t, dataDigests(t.Context(), t, third, "r"), dataDigests(t.Context(), t, other, "r"),
			"a lag of 0 is no section at all")
	})
	requireSound(t, objects, "r")
}

// requireKept requires that the checkpoints that the next steps are sampled from outlive the rule that would prune
// them.
func requireKept(t *testing.T, objects store.Store) {
	t.Helper()
	kept := map[string]bool{}
	for _, key := range keys(t, objects) {
		if _, rest, ok := strings.Cut(key, "/checkpoints/"); ok && strings.HasSuffix(key, ".safetensors") {
			kept[rest[:6]] = true
		}
	}
	for _, step := range []string{"000002", "000003", "000004"} {
		require.True(t, kept[step], "step %s in %v", step, kept)
	}
	require.False(t, kept["000001"], "%v", kept)
}

// What a pipelined recipe cannot do is refused with the reason.
func TestPipelinedRecipesThatCannotRun(t *testing.T) {
	b := newBench(t, mem.New())
	for name, c := range map[string]struct {
		set  []string
		want string
	}{
		"the sampler's log-probabilities": {[]string{"loss.old_log_probs=rollout"},
			"samples from earlier versions"},
		"unsolved problems": {[]string{"schedule={stages: [{from_step: 2, problems: unsolved, samples: 4}]}"},
			"draws a step's problems before the rewards"},
		"too far": {[]string{"pipeline.max_staleness=17"}, "pipeline.max_staleness=17: must be ≤ 16"},
		"PyTorch": {[]string{"engine.kind=torch"}, "pipeline.max_staleness: rollouts run while the policy is updated"},
	} {
		t.Run(name, func(t *testing.T) {
			set := append(append([]string{"loss.tis=null"}, pipelined[:3]...), c.set...)
			_, err := trainTinyError(t, b, "r", set...)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A pipelined run through servers trains the same weights as one whose engine generates, and compares the servers with
// the trainer under the version that sampled.
func TestAPipelinedRunThroughServers(t *testing.T) {
	set := []string{"steps=3", "pipeline.max_staleness=1", "loss.old_log_probs=recompute", "loss.tis={}",
		"checkpoint.keep_last=9"}
	b := newBench(t, mem.New())
	want := trainTiny(t, b, "alone", set...)
	dir := checkpointFolder(t, b.store, "alone")
	got := trainTiny(t, newBench(t, b.store), "served", append(set, named(t, serveFolder(t, dir)))...)
	require.Equal(t, want.Policy.Digest, got.Policy.Digest)
	made := policies(t, b.store, "served", 3)
	require.NotEqual(t, made[1], made[2])
	for step := 1; step <= 3; step++ {
		stats := mismatchOf(t, b.store, "served", step)
		require.Positive(t, stats[schema.StatMismatchTokens], "step %d", step)
		require.Less(t, stats[schema.StatMismatchMax], 1e-4, "step %d", step)
		rows := stepRows[schema.BehaviourRow](t, b.store, "served", step, schema.StageLogprobs)
		outputs := stepRows[schema.TokenOutputsRow](t, b.store, "served", step, schema.StageLogprobs)
		if step == 1 {
			require.Empty(t, rows, "the version that is updated has sampled")
			continue
		}
		require.Len(t, rows, len(outputs))
		differ := false
		for i, row := range rows {
			require.Equal(t, made[step-2], row.PolicyVersion)
			require.Equal(t, outputs[i].TrajectoryID, row.TrajectoryID)
			differ = differ || !slices.Equal(row.LogProbs, outputs[i].OldLogProbs)
		}
		require.Equal(t, made[step-1] != made[step-2], differ)
		require.Empty(t, stepRows[schema.BehaviourRow](t, b.store, "alone", step, schema.StageLogprobs))
	}
	out, err := verify.Run(t.Context(), b.store, "served")
	require.NoError(t, err)
	require.Empty(t, out.Faults)
}
