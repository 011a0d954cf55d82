package activities

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/selection"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// rewardRow has reward 1 for even samples and 0 for odd ones.
func rewardRow(group, sample int) schema.RewardRow {
	r := schema.RewardRow{
		GroupID: schema.GroupID(1, group), TrajectoryID: schema.TrajectoryID(1, group, sample),
		Turns: 1, ToolCalls: 1, AnswerTags: 1, Verdict: "wrong",
	}
	if sample%2 == 0 {
		r.Reward, r.Outcome, r.Success, r.Verdict = 1, 1, true, "exact"
	}
	return r
}

// rewardShard commits a shard's rewards without the excluded trajectories, which are listed separately.
func (b *stepBench) rewardShard(shard int, excluded map[string]string) schema.Ref {
	b.t.Helper()
	var rows []schema.RewardRow
	var gone []schema.SelectionRow
	for group := shard * 2; group < shard*2+2; group++ {
		for sample := range benchSamples {
			r := rewardRow(group, sample)
			if why, ok := excluded[r.TrajectoryID]; ok {
				gone = append(gone, selection.Exclude(r.GroupID, r.TrajectoryID, why))
				continue
			}
			rows = append(rows, r)
		}
	}
	place := schema.At("r", 1, schema.StageReward).WithShard(shard)
	w := &stage.Draft{Worker: b.deps, Place: place, Manifest: schema.NewManifest(place, b.deps.Code, strings.Repeat("d",
		64))}
	require.NoError(b.t, stage.Put(b.t.Context(), w, rows))
	if len(gone) > 0 {
		require.NoError(b.t, stage.Put(b.t.Context(), w, gone))
	}
	_, ref, _, err := b.deps.Record.Commit(b.t.Context(), w.Manifest)
	require.NoError(b.t, err)
	return ref
}

func TestResampleGivesEveryTrajectoryARow(t *testing.T) {
	b := stepOf(t, nil, nil)
	first, second := schema.TrajectoryID(1, 0, 0), schema.TrajectoryID(1, 0, 2)
	whole := b.rewardShard(1, nil)
	rewards := b.stage(schema.StageReward, -1,
		b.rewardShard(0, map[string]string{first: "engine: panicked: x", second: "sandbox: y"}), whole)
	out, err := do(b, learn.Resample{Worker: b.deps}.Execute, b.rewarded(rewards))
	require.NoError(t, err)
	require.Equal(t, 2, out.Reasons[schema.ReasonExcluded])
	require.Equal(t, 4, out.KeptGroups)
	rows := rowsAt[schema.SelectionRow](b, out.Manifest)
	require.Len(t, rows, benchGroups*benchSamples)
	require.Equal(t, out.Kept+out.Dropped, len(rows))
	for _, r := range rows {
		switch r.TrajectoryID {
		case first:
			require.Equal(t, "engine: panicked: x", *r.Excluded)
			require.Equal(t, schema.ReasonExcluded, r.Reason)
			require.InDelta(t, 0.25, r.GroupMean, 1e-12, "one of the four that are left is right")
		case second:
			require.Equal(t, "sandbox: y", *r.Excluded)
		default:
			require.Nil(t, r.Excluded)
		}
	}
	m, err := b.deps.Record.Read(t.Context(), out.Manifest)
	require.NoError(t, err)
	require.EqualValues(t, 2, m.Stats[schema.StatExcluded])
	require.NotContains(t, m.Note, schema.NoteExcludedShards)
}

func TestResampleWithoutASkippedShard(t *testing.T) {
	b := stepOf(t, nil, nil)
	rewards := b.stage(schema.StageReward, -1, b.rewardShard(1, nil))
	in := b.rewarded(rewards, api.StageRef{Stage: schema.StagePrompts, Ref: b.prompts})
	in.Excluded = []api.ExcludedShard{{Shard: 0, Stage: schema.StageSandbox,
		Reason: "no usable python interpreter\ntried: a, b"}}
	out, err := do(b, learn.Resample{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, 2*benchSamples, out.Reasons[schema.ReasonExcluded])
	require.Equal(t, 2, out.KeptGroups)
	require.Equal(t, 2, out.DroppedGroups)
	rows := rowsAt[schema.SelectionRow](b, out.Manifest)
	require.Len(t, rows, benchGroups*benchSamples)
	for i, r := range rows {
		require.Equal(t, schema.TrajectoryID(1, i/benchSamples, i%benchSamples), r.TrajectoryID)
		if i < 2*benchSamples {
			require.False(t, r.Kept)
			require.Equal(t, "shard 0 was skipped after its sandbox failed: no usable python interpreter", *r.Excluded)
			continue
		}
		require.Nil(t, r.Excluded)
	}
	m, err := b.deps.Record.Read(t.Context(), out.Manifest)
	require.NoError(t, err)
	require.Contains(t, m.Inputs, b.prompts)
	require.JSONEq(t, `[{"shard": 0, "stage": "sandbox", "reason": "no usable python interpreter\ntried: a, b"}]`,
		m.Note[schema.NoteExcludedShards])

	turns := b.stage(schema.StageRollout, 0, b.turnShard(1))
	batch, err := do(b, learn.ComputeAdvantages{Worker: b.deps}.Execute,
		b.rewarded(rewards, api.StageRef{Stage: schema.StageRollout, Ref: turns},
			api.StageRef{Stage: schema.StageResample, Ref: out.Manifest}))
	require.NoError(t, err)
	require.Equal(t, 8, batch.Rows, "4 rows of each group that is left")
}

// turnShard commits a response of one token for every trajectory of a shard.
func (b *stepBench) turnShard(shard int) schema.Ref {
	var rows []schema.TurnRow
	for group := shard * 2; group < shard*2+2; group++ {
		for sample := range benchSamples {
			rows = append(rows, schema.TurnRow{
				GroupID: schema.GroupID(1, group), TrajectoryID: schema.TrajectoryID(1, group, sample),
				ContextTokens: 1, TokenIDs: []int32{1, 2}, LossMask: []int32{0, 1},
				LogProbs: []float32{0, -1}, Entropies: []float32{0, 1}, Finish: "stop", PolicyVersion: "v",
			})
		}
	}
	return commitRows(b, schema.At("r", 1, schema.StageRollout).WithTurn(0).WithShard(shard), rows)
}

// The same remaining trajectories are selected whether a shard's trajectories are missing because the shard was
// skipped or because they were excluded one by one: each group draws from its own stream.
func TestResampleOfTheOthersIsTheSame(t *testing.T) {
	selected := func(shards int, excluded map[string]string,
		skip ...api.ExcludedShard) map[string]schema.SelectionRow {
		b := stepOf(t, nil, nil)
		var parts []schema.Ref
		for shard := benchShards - shards; shard < benchShards; shard++ {
			parts = append(parts, b.rewardShard(shard, excluded))
		}
		in := b.rewarded(b.stage(schema.StageReward, -1, parts...),
			api.StageRef{Stage: schema.StagePrompts, Ref: b.prompts})
		in.Excluded = skip
		out, err := do(b, learn.Resample{Worker: b.deps}.Execute, in)
		require.NoError(t, err)
		byID := map[string]schema.SelectionRow{}
		for _, r := range rowsAt[schema.SelectionRow](b, out.Manifest) {
			if r.GroupID >= schema.GroupID(1, 2) { // of shard 1
				byID[r.TrajectoryID] = r
			}
		}
		return byID
	}
	whole := selected(2, nil)
	require.Len(t, whole, 2*benchSamples)
	require.Equal(t, whole, selected(1, nil, api.ExcludedShard{Shard: 0, Stage: schema.StageRollout, Reason: "lost"}))
	all := map[string]string{}
	for group := range 2 {
		for sample := range benchSamples {
			all[schema.TrajectoryID(1, group, sample)] = "engine: lost"
		}
	}
	require.Equal(t, whole, selected(2, all))
}

func TestResampleRefuses(t *testing.T) {
	skip := func(shards ...int) (out []api.ExcludedShard) {
		for _, s := range shards {
			out = append(out, api.ExcludedShard{Shard: s, Stage: schema.StageRollout, Reason: "lost"})
		}
		return out
	}
	all := map[string]string{}
	for group := range benchGroups {
		for sample := range benchSamples {
			all[schema.TrajectoryID(1, group, sample)] = "engine: lost"
		}
	}
	for _, tt := range []struct {
		name     string
		shards   int // number of shards with rewards, the last ones
		excluded map[string]string
		skip     []api.ExcludedShard
		text     string
	}{
		{"every shard", 0, nil, skip(1, 0), "every shard of the step is skipped"},
		{"every trajectory", 2, all, nil,
			"all 24 trajectories of the step are excluded, the first because: engine: lost"},
		{"no such shard", 2, nil, skip(2), "the step's 4 prompts make no such shard"},
		{"a negative shard", 2, nil, skip(-1), "shard -1"},
		{"a shard twice", 1, nil, skip(0, 0), "shard 0 is to be skipped twice"},
		{"a shard with rewards", 2, nil, skip(0),
			fmt.Sprintf("trajectory %s has a reward", schema.TrajectoryID(1, 0, 0))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := stepOf(t, nil, nil)
			var parts []schema.Ref
			for shard := benchShards - tt.shards; shard < benchShards; shard++ {
				parts = append(parts, b.rewardShard(shard, tt.excluded))
			}
			in := api.StageInput{Scope: b.scope, Excluded: tt.skip,
				Made: api.Made{{Stage: schema.StagePrompts, Ref: b.prompts}}}
			if len(parts) > 0 {
				in.Made = append(in.Made, api.StageRef{Stage: schema.StageReward,
					Ref: b.stage(schema.StageReward, -1, parts...)})
			}
			_, err := do(b, learn.Resample{Worker: b.deps}.Execute, in)
			require.ErrorContains(t, err, tt.text)
			require.ErrorContains(t, err, "type: "+api.FailRefused)
			_, _, found, err := b.deps.Record.Lookup(t.Context(), schema.At("r", 1, schema.StageResample))
			require.NoError(t, err)
			require.False(t, found, "nothing is committed")
		})
	}
}
