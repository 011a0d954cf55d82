package activities_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// manifestAt reads the manifest at a place.
func manifestAt(t *testing.T, objects store.Store, place schema.Place) schema.Manifest {
	t.Helper()
	m, _, found, err := commit.New(objects).Lookup(context.Background(), place)
	require.NoError(t, err)
	require.True(t, found, place)
	return m
}

// checked recomputes every pure stage of a run and compares.
func checked(t *testing.T, objects store.Store, run string) {
	t.Helper()
	out, err := runReplay(t, copied(t, objects), workflows.ReplayStageInput{Run: run, Check: true})
	require.NoError(t, err)
	require.Positive(t, out.Check.Shards)
	require.Empty(t, out.Check.Differs)
}

// actorCritic is PPO with an adaptive penalty in the reward.
var actorCritic = []string{
	"steps=3", "advantage={name: gae}", "loss.value={lr: 0.001}", "loss.old_log_probs=recompute",
	"optimizer.minibatches=2", "optimizer.epochs=2",
	"loss.kl={in: reward, coefficient: 0.1, estimator: k1, controller: adaptive, target: 0.0001, horizon: 100}",
	"checkpoint.keep_last=2", "resample.vspo=null", "resample.roc=null",
}

func TestActorAndCritic(t *testing.T) {
	objects := mem.New()
	b := newBench(t, objects)
	result := trainTiny(t, b, "r", actorCritic...)
	warm := manifestAt(t, objects, schema.AtInit("r", schema.StageWarmStart))
	require.NotNil(t, warm.Critic)
	before, beta := warm.Critic.Digest, 0.1
	for step := 1; step <= 3; step++ {
		before, beta = actedAndCriticised(t, objects, step, before, beta)
	}
	t.Run("pruned with the policy", func(t *testing.T) {
		kept := map[string]bool{}
		for _, key := range keys(t, objects) {
			if strings.HasPrefix(key, schema.RunPrefix("r")+"checkpoints/") &&
				!strings.HasSuffix(key, schema.PrunedFile) {
				kept[strings.Split(strings.TrimPrefix(key, schema.RunPrefix("r")+"checkpoints/"), "/")[0][:6]] = true
			}
		}
		require.Equal(t, map[string]bool{"000000": true, "000002": true, "000003": true}, kept)
	})
	t.Run("the pure stages replay", func(t *testing.T) { checked(t, objects, "r") })
	t.Run("resumed with the policy", func(t *testing.T) {
		other := rewound(t, objects, 2, false)
		out, err := newBench(t, other).train(t, workflows.TrainRunInput{Run: "r", Resume: true})
		require.NoError(t, err)
		require.Equal(t, result.Policy.Digest, out.Policy.Digest)
		require.Equal(t, before, manifestAt(t, other, schema.At("r", 3, schema.StageUpdate)).Critic.Digest)
	})
}

// actedAndCriticised checks one step against the critic that it began with, and returns the next critic and
// coefficient.
func actedAndCriticised(t *testing.T, objects store.Store, step int, critic string, beta float64) (string, float64) {
	t.Helper()
	outputs := stepRows[schema.TokenOutputsRow](t, objects, "r", step, schema.StageLogprobs)
	require.NotEmpty(t, outputs)
	valued := false
	for _, o := range outputs {
		require.Equal(t, critic, o.CriticVersion)
		for _, v := range o.Values {
			valued = valued || v != 0
		}
	}
	require.Equal(t, step > 1, valued, "a fresh critic knows nothing")
	for _, row := range stepBatch(t, objects, "r", step) {
		require.NotNil(t, row.Returns)
		require.Nil(t, row.ReferenceLogProbs)
	}
	updates := stepRows[schema.UpdateRow](t, objects, "r", step, schema.StageUpdate)
	require.Len(t, updates, 4)
	for _, u := range updates {
		require.NotNil(t, u.ValueLoss)
		require.Positive(t, *u.ValueGradNorm)
		require.Nil(t, u.ReferenceKL, "the loss has no such term")
	}
	stats := manifestAt(t, objects, schema.At("r", step, schema.StageAdvantage)).Stats
	require.InDelta(t, beta, stats["kl_coefficient"], 1e-15)
	if step == 1 {
		require.InDelta(t, 0, stats["kl"], 1e-6)
		require.Less(t, stats["kl_coefficient_next"], beta, "there is no divergence yet, and a target above it")
	}
	require.NotEqual(t, beta, stats["kl_coefficient_next"])
	m := manifestAt(t, objects, schema.At("r", step, schema.StageUpdate))
	require.NotEqual(t, critic, m.Critic.Digest)
	return m.Critic.Digest, stats["kl_coefficient_next"]
}

// The slots compose: estimators over turns, losses, filters and rewards train through the same stages.
func TestMethodsTrain(t *testing.T) {
	objects := mem.New()
	b := newBench(t, objects)
	none := []string{"steps=1", "resample.vspo=null", "resample.roc=null", "optimizer.minibatches=2"}
	for name, set := range map[string][]string{
		"gigpo": {"layout=turns", "advantage={name: gigpo, anchors: similar, invalid_penalty: 0.1}",
			"loss={name: gspo}"},
		"empg": {"layout=turns", "advantage={name: empg}", "rollout.history=1",
			"loss={name: sapo, old_log_probs: recompute, sequence_mask: {denominator: shrink}}"},
		"aware": {"advantage.entropy_aware={}", "loss={name: aepo_clip}",
			"filters={overlong: true, void_turns: true, unreadable: true, repetition: {ngram: 2, times: 2}}",
			"resample.low_variance={}"},
		"cov": {"advantage={name: reinforce_pp}",
			"loss={name: clip_cov, cov_low: -9, cov_high: 9, cov_ratio: 0.1, cov_scope: microbatch}",
			"reward={name: spear}", "schedule.mu_horizon=4"},
		"kl-cov": {"advantage={name: rloo}", "loss={name: kl_cov, cov_ratio: 0.1, entropy: 0.01}",
			"optimizer.microbatch_tokens=300", "reward={name: prs_short, smoothed_bleu: true}"},
	} {
		t.Run(name, func(t *testing.T) {
			trainTiny(t, b, name, append(append([]string{}, none...), set...)...)
			warm := checkpointDigest(t, objects, schema.AtInit(name, schema.StageWarmStart))
			require.NotEqual(t, warm, checkpointDigest(t, objects, schema.At(name, 1, schema.StageUpdate)))
			require.Nil(t, manifestAt(t, objects, schema.AtInit(name, schema.StageWarmStart)).Critic)
			rows, masked := 0, 0
			for _, s := range stepRows[schema.SelectionRow](t, objects, name, 1, schema.StageResample) {
				if s.Masked != nil {
					masked++
				}
				if !s.Kept {
					continue
				}
				for _, turn := range stepRows[schema.TurnRow](t, objects, name, 1, schema.StageRollout) {
					if turn.TrajectoryID == s.TrajectoryID && (turn.Turn == 0 || name == "gigpo" || name == "empg") {
						rows++
					}
				}
			}
			require.Equal(t, name == "aware", masked > 0)
			batch := stepBatch(t, objects, name, 1)
			require.Len(t, batch, rows)
			require.Equal(t, name == "gigpo" || name == "empg", batch[0].Turn != nil)
			if name == "aware" {
				asked := stepRows[schema.TokenOutputsRow](t, objects, name, 1, schema.StageLogprobs)
				require.Len(t, asked, rows-masked, "no model is asked about what is masked")
				out, err := verify.Run(t.Context(), objects, name)
				require.NoError(t, err)
				require.Empty(t, out.Faults)
			}
			if name == "empg" {
				heldToHistory(t, objects, name, batch)
			}
			checked(t, objects, name)
		})
	}
}

// heldToHistory checks rows of turns whose prompts had one earlier turn against the rollout: the models sampled, read
// and trained on the same tokens.
func heldToHistory(t *testing.T, objects store.Store, run string, batch []schema.BatchRow) {
	t.Helper()
	turns := map[string][]schema.TurnRow{}
	for _, turn := range stepRows[schema.TurnRow](t, objects, run, 1, schema.StageRollout) { // by trajectory, then turn
		turns[turn.TrajectoryID] = append(turns[turn.TrajectoryID], turn)
	}
	later := 0
	for _, row := range batch {
		of, k := turns[row.TrajectoryID], int(*row.Turn)
		task := of[0].TokenIDs[:of[0].ContextTokens]
		want := slices.Clone(task)
		if k > 1 {
			later++
			last := of[k-2].TokenIDs
			want = append(append(want, last[len(last)-1]), of[k-1].TokenIDs...)
		} else if k == 1 {
			want = of[0].TokenIDs
		}
		own := of[k].TokenIDs
		if k == 0 {
			want = nil
		}
		require.Equal(t, slices.Concat(want, own), row.TokenIDs, "turn %d", k)
		n := len(row.TokenIDs) - len(own)
		require.LessOrEqual(t, apart(t, row.OldLogProbs[n:], of[k].LogProbs, of[k].LossMask), 1e-5,
			"the engine that learns agrees with the one that generated")
	}
	require.Positive(t, later, "some trajectory has a third turn")
}
