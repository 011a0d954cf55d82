package activities

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// bufferBench is a run with a replay buffer, whose steps have two groups of three trajectories.
type bufferBench struct{ *stepBench }

func bufferOf(t *testing.T, replay string) bufferBench {
	t.Helper()
	b := bufferBench{stepOf(t, nil, nil)}
	resolved, err := recipes.Resolve("quickstart", "", append([]string{"replay=" + replay}, benchRecipe...), nil, nil)
	require.NoError(t, err)
	b.scope.Run = "buffered"
	b.scope.Config, err = commitRecipe(t.Context(), b.deps, b.scope.Run,
		schema.AtInit(b.scope.Run, schema.StagePrepare), resolved, enginepool.Choice{Kind: "cpu"})
	require.NoError(t, err)
	return b
}

// step commits a step's rewards and batch. In each group, samples 0 and 1 are kept, and sample 0 is the better one;
// sample 2 was dropped. Sample 0 has the group's reward from best, and the others have reward 0.
func (b bufferBench) step(step int, best ...float64) api.StageInput {
	b.t.Helper()
	var rewards []schema.RewardRow
	var batch []schema.BatchRow
	for g, r := range best {
		for k := range 3 {
			row := schema.RewardRow{GroupID: schema.GroupID(step, g), TrajectoryID: schema.TrajectoryID(step, g, k),
				ToolCalls: int32(g), Verdict: "exact"}
			if k == 0 {
				row.Reward = r
			}
			rewards = append(rewards, row)
			if k == 2 {
				continue
			}
			a := float32(1 - 2*k)
			batch = append(batch, schema.BatchRow{
				GroupID: row.GroupID, TrajectoryID: row.TrajectoryID, Count: 2, Weight: 1.5,
				TokenIDs: []int32{int32(step), int32(g), int32(k)},
				LossMask: []int32{0, 1, 1}, OldLogProbs: []float32{0, -0.5, -float32(step)},
				Advantages: []float32{0, a, a},
			})
		}
	}
	in := b.rewarded(commitRows(b.stepBench, schema.At(b.scope.Run, step, schema.StageReward), rewards))
	in.Step = step
	place := schema.At(b.scope.Run, step, schema.StageAdvantage)
	data, err := schema.EncodeBatch(batch)
	require.NoError(b.t, err)
	w := &stage.Draft{Worker: b.deps, Place: place, Manifest: schema.NewManifest(place, b.deps.Code, strings.Repeat("d",
		64))}
	require.NoError(b.t, w.Shard(b.t.Context(), schema.Batch, data, len(batch)))
	_, ref, _, err := b.deps.Record.Commit(b.t.Context(), w.Manifest)
	require.NoError(b.t, err)
	in.Made = append(in.Made, api.StageRef{Stage: schema.StageAdvantage, Ref: ref})
	return in
}

func (b bufferBench) update(in api.StageInput) api.Buffered {
	b.t.Helper()
	out, err := do(b.stepBench, learn.UpdateReplayBuffer{Worker: b.deps}.Execute, in)
	require.NoError(b.t, err)
	return out
}

func (b bufferBench) held(ref schema.Ref) []string {
	var out []string
	for _, r := range rowsAt[schema.ReplayRow](b.stepBench, ref) {
		out = append(out, r.TrajectoryID)
	}
	return out
}

func (b bufferBench) manifest(ref schema.Ref) schema.Manifest {
	b.t.Helper()
	m, err := b.deps.Record.Read(b.t.Context(), ref)
	require.NoError(b.t, err)
	return m
}

// Algorithm 1 over four steps, with a buffer of 3 and 5 baselines.
func TestReplayBufferFillsAndIsConsumed(t *testing.T) {
	b := bufferOf(t, "{size: 3, baselines: 5}")
	inputs := []api.StageInput{{}, b.step(1, 3, 0.9), b.step(2, 6, 3), b.step(3, 1.5, 3), b.step(4, 3, 3)}

	first := b.update(inputs[1])
	require.Equal(t, []string{"00001/0000/000", "00001/0001/000"}, b.held(first.Manifest))
	require.Equal(t, 2, first.Size)
	require.Equal(t, 2, first.Stored)
	require.False(t, first.Consumed)
	row := rowsAt[schema.ReplayRow](b.stepBench, first.Manifest)[1]
	require.Equal(t, schema.ReplayRow{
		GroupID: "00001/0001", TrajectoryID: "00001/0001/000", Collected: 1, Reward: 0.9, Advantage: 1,
		TokenIDs: []int32{1, 1, 0}, LossMask: []int32{0, 1, 1}, OldLogProbs: []float32{0, -0.5, -1},
	}, row)
	require.Equal(t, []schema.BaselineRow{
		// Dropped trajectories count.
		{GroupID: "00001/0000", Collected: 1, Mean: 1}, {GroupID: "00001/0001", Collected: 1, Mean: 0.9 / 3},
	}, rowsAt[schema.BaselineRow](b.stepBench, first.Manifest))

	inputs[2].Before = first.Manifest
	second := b.update(inputs[2])
	require.Equal(t, []string{"00001/0000/000", "00001/0001/000", "00002/0000/000", "00002/0001/000"},
		b.held(second.Manifest))
	require.Empty(t, b.manifest(second.Manifest).ShardsOf(schema.ReplayBatch))
	require.Equal(t, []schema.Ref{b.scope.Config, first.Manifest, inputs[2].Made[0].Ref, inputs[2].Made[1].Ref},
		b.manifest(second.Manifest).Inputs)

	// Means 1 | 2, 1 | 0.5, 1 without the oldest's 0.3 … the queue holds 5: 0.3, 2, 1, 0.5, 1, so P50 = 1.
	inputs[3].Before = second.Manifest
	third := b.update(inputs[3])
	require.True(t, third.Consumed)
	require.Zero(t, third.Size)
	require.Zero(t, third.Stored, "the positives of a step that learns from the buffer are not kept")
	require.Equal(t, 5, third.Baselines)
	require.InDelta(t, 1, third.P50, 1e-15)
	require.Empty(t, b.held(third.Manifest))
	m := b.manifest(third.Manifest)
	again, err := b.deps.ReadReplayBatch(t.Context(), m)
	require.NoError(t, err)
	require.Len(t, again, 3, "0.9 is below the median")
	require.Equal(t, schema.BatchRow{
		GroupID: "00002/0000", TrajectoryID: "00002/0000/000", Count: 1, Weight: 1, TokenIDs: []int32{2, 0, 0},
		LossMask:    []int32{0, 1, 1},
		OldLogProbs: []float32{0, -0.5, -2}, Advantages: []float32{0, 5, 5},
	}, again[1])
	require.Equal(t, 3, third.Imitated)
	require.InDelta(t, (2.0+5+2)/3, third.Recalibrated, 1e-12)
	require.InDelta(t, 3, m.Stats[learn.StatImitated], 0)
	require.InDelta(t, 1, m.Stats[learn.StatConsumed], 0)

	inputs[4].Before = third.Manifest
	require.Equal(t, []string{"00004/0000/000", "00004/0001/000"}, b.held(b.update(inputs[4]).Manifest))

	t.Run("the same bytes again", func(t *testing.T) {
		for step, before := range []api.Buffered{1: first, 2: second, 3: third} {
			if step == 0 {
				continue
			}
			in := inputs[step]
			in.Gen = 1
			after := b.update(in)
			require.NotEqual(t, before.Manifest, after.Manifest)
			was, is := b.manifest(before.Manifest).Shards, b.manifest(after.Manifest).Shards
			require.Len(t, is, len(was))
			for i := range was {
				require.Equal(t, was[i].Digest, is[i].Digest, was[i].Key)
			}
			adopted := b.update(in)
			require.True(t, adopted.Adopted)
			after.Adopted, after.Timing, adopted.Timing = true, api.Timing{}, api.Timing{}
			require.Equal(t, after, adopted)
		}
	})
}

func TestReplayBufferRules(t *testing.T) {
	t.Run("only with a tool call", func(t *testing.T) {
		b := bufferOf(t, "{require_tool_call: true}")
		require.Equal(t, []string{"00001/0001/000"}, b.held(b.update(b.step(1, 1, 1)).Manifest))
	})
	t.Run("too old", func(t *testing.T) {
		b := bufferOf(t, "{max_age: 1}")
		in := b.step(1, 1)
		for step := 2; step <= 3; step++ {
			before := b.update(in)
			in = b.step(step, 1)
			in.Before = before.Manifest
		}
		require.Equal(t, []string{"00002/0000/000", "00003/0000/000"}, b.held(b.update(in).Manifest))
	})
	t.Run("full by the release's rule", func(t *testing.T) {
		b := bufferOf(t, "{size: 1, full_rule: p50_1.5x}")
		in := b.step(1, 3, 3) // two trajectories above the median 1 are more than 1.5
		before := b.update(in)
		in = b.step(2)
		in.Before = before.Manifest
		out := b.update(in)
		require.True(t, out.Consumed)
		require.Equal(t, 2, out.Imitated)
	})
	t.Run("nothing is worth it any more", func(t *testing.T) {
		b := bufferOf(t, "{size: 1}")
		before := b.update(b.step(1, 1))
		in := b.step(2, 30, 60, 90)
		in.Before = before.Manifest
		out := b.update(in)
		require.True(t, out.Consumed)
		require.Zero(t, out.Imitated)
		again, err := b.deps.ReadReplayBatch(t.Context(), b.manifest(out.Manifest))
		require.NoError(t, err)
		require.Empty(t, again)
		require.Len(t, b.manifest(out.Manifest).Shards, 3)
	})
	t.Run("a step without a batch", func(t *testing.T) {
		b := bufferOf(t, "{}")
		out := b.update(b.step(1))
		require.Zero(t, out.Size+out.Baselines)
		require.Zero(t, out.P50)
	})
	t.Run("no section, no buffer", func(t *testing.T) {
		b := bufferOf(t, "null")
		_, err := do(b.stepBench, learn.UpdateReplayBuffer{Worker: b.deps}.Execute, b.step(1, 1))
		require.ErrorContains(t, err, "no section replay")
	})
}
