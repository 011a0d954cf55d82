package activities_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

const (
	tightTokens = 64 // of the first stage, too few for many trajectories
	firstStep   = "{from_step: 1, max_tokens: 64}"
	thirdStep   = "{from_step: 3, max_tokens: 160, lr: 0.0005, problems: unsolved, samples: 4, refresh_reference: true"
)

// tight has few tokens and a reference, and keeps only the last two checkpoints.
var tight = []string{"steps=4", "loss.kl={coefficient: 0.01}", "checkpoint.keep_last=2", "schedule={stages: [" +
	firstStep + "]}"}

// loosened continues with more tokens and with the stage's other changes.
func loosened(more string) []string {
	return append(slices.Clone(tight), "schedule={stages: ["+firstStep+", "+thirdStep+more+"}]}")
}

// longest is the length of a step's longest trajectory.
func longest(t *testing.T, objects store.Store, run string, step int) int {
	t.Helper()
	most, tokens := 0, map[string]int{}
	for _, turn := range stepRows[schema.TurnRow](t, objects, run, step, schema.StageRollout) {
		tokens[turn.TrajectoryID] += len(turn.TokenIDs)
		most = max(most, tokens[turn.TrajectoryID])
	}
	return most
}

func updateManifest(t *testing.T, objects store.Store, run string, step int) schema.Manifest {
	t.Helper()
	m, _, found, err := commit.New(objects).Lookup(context.Background(), schema.At(run, step, schema.StageUpdate))
	require.NoError(t, err)
	require.True(t, found)
	return m
}

func TestAStageChangesTheRun(t *testing.T) {
	objects := mem.New()
	b := newBench(t, objects)
	result := trainTiny(t, b, "r", loosened(", reset_optimizer: true")...)
	second := checkpointDigest(t, objects, schema.At("r", 2, schema.StageUpdate))
	warm := checkpointDigest(t, objects, schema.AtInit("r", schema.StageWarmStart))
	for step := 1; step <= 4; step++ {
		lr, reference := 0.001, warm
		if step >= 3 {
			lr, reference = 0.0005, second
		} else {
			require.LessOrEqual(t, longest(t, objects, "r", step), tightTokens)
		}
		if step == 3 { // the fourth step may happen to have none
			require.Greater(t, longest(t, objects, "r", step), tightTokens)
		}
		for _, u := range stepRows[schema.UpdateRow](t, objects, "r", step, schema.StageUpdate) {
			require.Equal(t, lr, u.LR, "step %d", step)
		}
		for _, o := range stepRows[schema.TokenOutputsRow](t, objects, "r", step, schema.StageLogprobs) {
			require.Equal(t, reference, o.ReferenceVersion, "step %d", step)
		}
		require.Equal(t, step == 3, updateManifest(t, objects, "r", step).Note["optimizer"] == "reset", "step %d", step)
	}
	t.Run("before it the run is as without", func(t *testing.T) {
		trainTiny(t, b, "plain", append(tight, "steps=2")...)
		require.Equal(t, second, checkpointDigest(t, objects, schema.At("plain", 2, schema.StageUpdate)))
	})
	t.Run("the optimiser's state makes a difference", func(t *testing.T) {
		trainTiny(t, b, "kept", append(loosened(""), "steps=3")...)
		require.Equal(t, stepBatch(t, objects, "r", 3), stepBatch(t, objects, "kept", 3))
		require.Empty(t, updateManifest(t, objects, "kept", 3).Note["optimizer"])
		require.NotEqual(t, checkpointDigest(t, objects, schema.At("r", 3, schema.StageUpdate)),
			checkpointDigest(t, objects, schema.At("kept", 3, schema.StageUpdate)))
	})
	t.Run("resumed", func(t *testing.T) {
		for _, half := range []bool{false, true} { // the stage's first step has reached its update
			out, err := newBench(t, rewound(t, objects, 2, half)).train(t,
				workflows.TrainRunInput{Run: "r", Resume: true})
			require.NoError(t, err)
			require.Equal(t, result.Policy.Digest, out.Policy.Digest)
		}
	})
	t.Run("the critic's as well", func(t *testing.T) {
		critics := map[string]bool{}
		for run, reset := range map[string]string{"critic": "true", "critic-kept": "false"} {
			trainTiny(t, b, run, "steps=2", "advantage={name: gae}", "loss.old_log_probs=recompute",
				"loss.value={lr: 0.0005}",
				"schedule={stages: [{from_step: 2, reset_optimizer: "+reset+"}]}")
			critics[updateManifest(t, objects, run, 2).Critic.Digest] = true
		}
		require.Len(t, critics, 2)
	})
	requireSound(t, objects, "r")
}

// requireSound requires that a run's record verifies, and that its pure stages make the same rows again.
func requireSound(t *testing.T, objects store.Store, run string) {
	t.Helper()
	t.Run("verify", func(t *testing.T) {
		out, err := verify.Run(t.Context(), objects, run)
		require.NoError(t, err)
		require.Empty(t, out.Faults)
	})
	t.Run("check", func(t *testing.T) {
		out, err := runReplay(t, copied(t, objects), workflows.ReplayStageInput{Run: run, Check: true})
		require.NoError(t, err)
		require.Positive(t, out.Check.Shards)
		require.Empty(t, out.Check.Differs)
	})
}
