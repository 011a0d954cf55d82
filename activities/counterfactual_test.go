package activities_test

import (
	"crypto/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/gc"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// replays replays stages of run r on a worker that has the engine.
func (b *bench) replays(t *testing.T, in workflows.ReplayStageInput) workflows.ReplayStageResult {
	t.Helper()
	in.Run, in.Through = "r", schema.StageUpdate
	env := pipelinetest.Environment(b.deps)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: rand.Text()})
	out, err := pipelinetest.Run[workflows.ReplayStageResult](env, workflows.ReplayStageName, in)
	require.NoError(t, err)
	return out
}

// With the same settings a replay trains the run's own policy again, whatever else an update continues.
func TestAReplayOfTheUpdateTrainsTheSamePolicy(t *testing.T) {
	for name, set := range map[string][]string{"plain": nil, "buffer": imitating, "critic": actorCritic,
		"pipelined": append(slices.Clone(pipelined), "checkpoint.keep_last=4")} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, mem.New())
			whole := trainTiny(t, b, "r", set...)
			for _, from := range []string{schema.StageReward, schema.StageUpdate} {
				out := b.replays(t, workflows.ReplayStageInput{Step: whole.Steps, From: from, NoEvaluation: true})
				require.Equal(t, whole.Policy.Digest, out.Update.Policy.Digest)
				require.Zero(t, *out.Update.KL)
				require.Positive(t, out.Update.Tokens)
				require.Nil(t, out.Update.Success)
				for _, s := range out.Stages {
					require.True(t, s.Same, s.Stage)
				}
			}
			b.sound(t, "r")
		})
	}
}

// A replay with another reward, selection or loss trains another policy next to the run's own, and compares the two.
// The run does not notice.
func TestACounterfactualPolicyIsComparedWithTheRunsOwn(t *testing.T) {
	b := newBench(t, mem.New())
	whole := trainTiny(t, b, "r", "steps=2", "loss.old_log_probs=recompute", "evaluation.every=0")
	before := keys(t, b.store)
	other := []string{"resample.roc=null", "resample.vspo=null", "loss.clip_high=0.2", "optimizer.lr=0.01"}

	last := b.replays(t, workflows.ReplayStageInput{Step: 2, From: schema.StageReward, Set: other})
	require.Equal(t, whole.Policy, *last.Update.Own)
	require.NotEqual(t, whole.Policy.Digest, last.Update.Policy.Digest)
	require.Positive(t, *last.Update.KL)
	require.Equal(t, whole.Final, *last.Update.OwnSuccess,
		"the run has measured its last policy")
	require.NotNil(t, last.Update.Success)
	tokens := 0
	for _, turn := range stepRows[schema.TurnRow](t, b.store, "r", 2, schema.StageRollout) {
		for _, m := range turn.LossMask {
			tokens += int(m)
		}
	}
	require.Equal(t, tokens, last.Update.Tokens, "all trajectories, kept or not")
	require.Equal(t, "logprobs", last.Stages[2].Stage, "more trajectories are kept, and the engine is asked about them")
	require.False(t, last.Stages[2].Same)

	first := b.replays(t, workflows.ReplayStageInput{Step: 1, From: schema.StageResample, Set: other})
	factual := schema.At("r", 1, schema.StageFactual).WithGen(1)
	_, _, found, err := b.record.Lookup(t.Context(), factual)
	require.NoError(t, err)
	require.True(t, found, "the run has not measured its policy after step 1")
	require.NotNil(t, first.Update.OwnSuccess)

	b.sound(t, "r")
	for _, key := range keys(t, b.store) {
		if !slices.Contains(before, key) {
			require.Regexp(t, `gen=1|/checkpoints/`, key)
		}
	}
	b.readsGenerations(t)
	collected, err := gc.Collect(t.Context(), b.store, gc.Options{})
	require.NoError(t, err)
	require.Empty(t, collected.Collect)
	again, err := b.train(t, workflows.TrainRunInput{Run: "r", Resume: true})
	require.NoError(t, err)
	require.Equal(t, whole.Policy, again.Policy)
}

// readsGenerations checks that readers find a counterfactual policy where they are asked for its generation alone.
func (b *bench) readsGenerations(t *testing.T) {
	t.Helper()
	updates := func(g analysis.Generation) (after []string, evaluated []int) {
		v, err := analysis.New(b.store).WithGeneration(g).Visible(t.Context(), "r")
		require.NoError(t, err)
		shards, err := v.Shards(t.Context(), schema.Updates)
		require.NoError(t, err)
		for _, s := range shards {
			after = append(after, s.Digest)
		}
		evaluated, err = v.Evaluated(t.Context())
		require.NoError(t, err)
		return after, evaluated
	}
	own, ownEvaluated := updates(analysis.Heads)
	replayed, replayedEvaluated := updates(analysis.Numbered(1))
	require.Len(t, own, 2)
	require.Len(t, replayed, 2)
	require.NotEqual(t, own[0], replayed[0])
	require.NotEqual(t, own[1], replayed[1])
	require.NotContains(t, ownEvaluated, 1)
	require.Contains(t, replayedEvaluated, 1)
}

// Settings that the update cannot follow, and steps whose policies are gone, are refused before anything is written.
func TestReplaysOfTheUpdateThatAreRefused(t *testing.T) {
	b := newBench(t, mem.New())
	trainTiny(t, b, "r", "steps=2", "checkpoint.keep_last=1")
	for want, in := range map[string]workflows.ReplayStageInput{
		"step: the policy that step 2 of run r began with is pruned": {Step: 2},
		"--set rollout.temperature=0.5: no replayed stage reads it":  {Set: []string{"rollout.temperature=0.5"}},
		"--set policy.layers=3: no replayed stage reads it":          {Set: []string{"policy.layers=3"}},
		"optimizer.name: the policy that step 1 of run r began with has the state of adamw": {
			Set: []string{"optimizer={name: sgd, lr: 0.01}"}},
		"loss.value: the policy that step 1 of run r began with has no critic": {
			Set: []string{"advantage={name: gae}", "loss.value={lr: 0.001}", "resample.vspo=null",
				"resample.roc=null", "loss.old_log_probs=recompute"}},
		"replay from advantage": {From: schema.StageUpdate, Set: []string{"loss.old_log_probs=recompute"}},
	} {
		in.Run, in.Through = "r", schema.StageUpdate
		if in.From == "" {
			in.From = schema.StageReward
		}
		if in.Step == 0 {
			in.Step = 1
		}
		before := keys(t, b.store)
		_, err := runReplay(t, b.store, in)
		require.ErrorContains(t, err, want)
		require.Equal(t, before, keys(t, b.store))
		require.ErrorContains(t, askedBefore(t, b.store, in), want)
	}
}
