package activities_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// imitating makes the tests' recipe learn from its buffer within four steps.
var imitating = []string{
	"steps=4", "replay={size: 12, baselines: 24, cov_low: -1, cov_high: 1, cov_ratio: 0.1}",
	"schedule={gamma_horizon: 8}",
	"optimizer.minibatches=2", "checkpoint.keep_last=4",
}

// bufferManifest is the stage buffer's manifest that a step's head names.
func bufferManifest(t *testing.T, objects store.Store, run string, step int) (schema.Manifest, schema.Ref) {
	t.Helper()
	record := commit.New(objects)
	head, _, found, err := record.Head(context.Background(), run, strconv.Itoa(step))
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, head.Stages[schema.StageBuffer], 1)
	ref := head.Stages[schema.StageBuffer][0]
	m, err := record.Read(context.Background(), ref)
	require.NoError(t, err)
	return m, ref
}

func TestReplayBufferInTraining(t *testing.T) {
	objects := mem.New()
	b := newBench(t, objects)
	result := trainTiny(t, b, "r", imitating...)
	consumed := bufferedSteps(t, objects)
	require.NotEmpty(t, consumed, "the buffer fills within four steps")
	require.Less(t, len(consumed), 4)
	t.Run("verify", func(t *testing.T) {
		out, err := verify.Run(t.Context(), objects, "r")
		require.NoError(t, err)
		require.Empty(t, out.Faults)
	})
	t.Run("resumed", func(t *testing.T) {
		other := rewound(t, objects, 2, true)
		out, err := newBench(t, other).train(t, workflows.TrainRunInput{Run: "r", Resume: true})
		require.NoError(t, err)
		require.Equal(t, result.Policy.Digest, out.Policy.Digest)
		for step := 1; step <= 4; step++ {
			_, was := bufferManifest(t, objects, "r", step)
			_, is := bufferManifest(t, other, "r", step)
			require.Equal(t, was, is)
		}
	})
	t.Run("jointly", func(t *testing.T) { learntJointly(t, b, consumed[0]) })
	t.Run("replays", func(t *testing.T) {
		bufferReplays(t, func() *mem.Store { return copied(t, objects) }, consumed[0])
	})
}

// learntJointly trains up to the first full buffer with one loss over the batch and the replayed rows. Until then
// nothing differs, whatever is pruned, and then each optimiser step has a row for both.
func learntJointly(t *testing.T, b *bench, full int) {
	trainTiny(t, b, "joint", append(imitating, "replay.order=joint", "checkpoint.keep_last=1",
		"steps="+strconv.Itoa(full))...)
	before := func(run string) string {
		return checkpointDigest(t, b.store, schema.At(run, full-1, schema.StageUpdate))
	}
	require.Equal(t, before("r"), before("joint"))
	one, _ := bufferManifest(t, b.store, "r", full)
	two, _ := bufferManifest(t, b.store, "joint", full)
	for i := range one.Shards {
		require.Equal(t, one.Shards[i].Digest, two.Shards[i].Digest)
	}
	require.NotEqual(t, checkpointDigest(t, b.store, schema.At("r", full, schema.StageUpdate)),
		checkpointDigest(t, b.store, schema.At("joint", full, schema.StageUpdate)))
	updates := stepRows[schema.UpdateRow](t, b.store, "joint", full, schema.StageUpdate)
	require.Len(t, updates, 4, "two optimiser steps on both")
	rows := map[string]int{}
	for i, u := range updates {
		require.Equal(t, updates[i-i%2].OptimizerStep, u.OptimizerStep)
		require.Equal(t, updates[i-i%2].GradNorm, u.GradNorm)
		require.Equal(t, []string{schema.SourcePolicy, schema.SourceReplay}[i%2], *u.Source)
		rows[*u.Source] += int(u.Rows)
	}
	require.Equal(t, updates[0].OptimizerStep+1, updates[2].OptimizerStep)
	require.Equal(t, two.ShardsOf(schema.ReplayBatch)[0].Rows, rows[schema.SourceReplay])
	overview, err := analysis.New(b.store).Overview(t.Context(), "joint")
	require.NoError(t, err)
	require.Equal(t, 2, overview.Steps[full-1].Updates)
	out, err := verify.Run(t.Context(), b.store, "joint")
	require.NoError(t, err)
	require.Empty(t, out.Faults)
}

// bufferedSteps checks each step's state against the previous step, and its update against the committed rows. It
// returns the steps that learnt from the buffer.
func bufferedSteps(t *testing.T, objects store.Store) (consumed []int) {
	t.Helper()
	var before []schema.ReplayRow
	var last schema.Ref
	for step := 1; step <= 4; step++ {
		m, ref := bufferManifest(t, objects, "r", step)
		if step > 1 {
			require.Contains(t, m.Inputs, last)
		}
		last = ref
		rows := stepRows[schema.ReplayRow](t, objects, "r", step, schema.StageBuffer)
		require.LessOrEqual(t, len(stepRows[schema.BaselineRow](t, objects, "r", step, schema.StageBuffer)), 24)
		positive := 0
		for _, row := range stepBatch(t, objects, "r", step) {
			for i, mask := range row.LossMask {
				if mask == 1 {
					if row.Advantages[i] > 0 {
						positive++
					}
					break
				}
			}
		}
		full := len(before) >= 12
		require.Equal(t, full, len(m.ShardsOf(schema.ReplayBatch)) == 1, "step %d", step)
		updates := stepRows[schema.UpdateRow](t, objects, "r", step, schema.StageUpdate)
		again := 0
		for i, u := range updates {
			require.NotNil(t, u.Source)
			require.Equal(t, int32(i), u.Minibatch)
			if *u.Source == schema.SourceReplay {
				again += int(u.Rows)
			} else {
				require.Zero(t, again, "the batch comes first")
			}
		}
		if full {
			consumed = append(consumed, step)
			require.Empty(t, rows)
			require.Equal(t, m.ShardsOf(schema.ReplayBatch)[0].Rows, again)
		} else {
			require.Len(t, rows, len(before)+positive)
			require.Zero(t, again)
		}
		before = rows
	}
	return consumed
}

// rewound is the record of the run right after a step, or when half of the next step was done.
func rewound(t *testing.T, objects store.Store, step int, half bool) *mem.Store {
	t.Helper()
	to := mem.New()
	for _, key := range keys(t, objects) {
		if later(key, step, half) {
			continue
		}
		data, err := objects.Get(context.Background(), key)
		require.NoError(t, err)
		require.NoError(t, to.Put(context.Background(), key, data))
	}
	return to
}

func later(key string, step int, half bool) bool {
	if _, head, err := schema.ParseHeadKey(key); err == nil {
		n, numbered := schema.Place{Step: head}.StepNumber()
		return numbered && n > step
	}
	p, err := schema.ParseManifestKey(key)
	if err != nil || p.Run != "r" {
		return false // data that no manifest names is an orphan
	}
	n, numbered := p.StepNumber()
	switch {
	case !numbered || n <= step:
		return false
	case n > step+1 || !half:
		return true
	}
	return p.Stage == schema.StageUpdate || p.Stage == schema.StagePublish || p.Stage == schema.StageEvaluate
}

func bufferReplays(t *testing.T, copyRecord func() *mem.Store, consumed int) {
	t.Run("unchanged inputs give the same digests", func(t *testing.T) {
		objects := copyRecord()
		for _, from := range []string{"reward", "resample", "advantage", "buffer"} {
			out, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Step: consumed, From: from})
			require.NoError(t, err)
			require.Equal(t, schema.StageBuffer, out.Stages[len(out.Stages)-1].Stage)
			require.Equal(t, 3, out.Stages[len(out.Stages)-1].Shards)
			for _, s := range out.Stages {
				require.True(t, s.Same, s.Stage)
			}
		}
		_, ref := bufferManifest(t, objects, "r", consumed)
		require.Contains(t, ref.Key, "gen=0", "no head moves")
		out, err := verify.Run(t.Context(), objects, "r")
		require.NoError(t, err)
		require.Empty(t, out.Faults)
	})
	t.Run("through advantage alone", func(t *testing.T) {
		out, err := runReplay(t, copyRecord(), workflows.ReplayStageInput{Run: "r", Step: consumed, From: "reward",
			Through: "advantage"})
		require.NoError(t, err)
		require.Len(t, out.Stages, 3)
	})
	t.Run("another capacity", func(t *testing.T) {
		objects := copyRecord()
		out, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Step: consumed, From: "advantage",
			Set: []string{"replay.size=1000"}})
		require.NoError(t, err)
		require.True(t, out.Stages[0].Same)
		require.False(t, out.Stages[1].Same)
		require.Equal(t, 2, out.Stages[1].Shards, "nothing is learnt from")
		verified, err := verify.Run(t.Context(), objects, "r")
		require.NoError(t, err)
		require.Empty(t, verified.Faults)
	})
	t.Run("refusals", func(t *testing.T) {
		_, err := runReplay(t, copyRecord(), workflows.ReplayStageInput{Run: "r", Step: consumed, From: "buffer",
			Set: []string{"replay=null"}})
		require.ErrorContains(t, err, "schedules the weight of a replay loss, and there is no replay")
		_, err = runReplay(t, copyRecord(), workflows.ReplayStageInput{Run: "r", Step: consumed, From: "reward",
			Through: "advantage", Set: []string{"replay.size=2"}})
		require.ErrorContains(t, err, "no replayed stage reads it")
	})
	t.Run("check", func(t *testing.T) {
		objects := copyRecord()
		before := keys(t, objects)
		out, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Check: true})
		require.NoError(t, err)
		require.Empty(t, out.Check.Differs)
		require.GreaterOrEqual(t, out.Check.Shards, 4*(2+1+1+2)+1)
		require.Equal(t, before, keys(t, objects))
	})
}
