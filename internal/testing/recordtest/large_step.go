package recordtest

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// finish commits a drawn step: its shards, stage manifests, selection, batch, update and head.
func (l *large) finish(step int, prompts schema.Ref, shards []drawn) {
	r := l.Run
	var committed []shardManifests
	for i, d := range shards {
		committed = append(committed, l.commitShard(step, i, prompts, d))
	}
	part := func(of func(shardManifests) schema.Ref) []schema.Ref {
		var out []schema.Ref
		for _, x := range committed {
			out = append(out, of(x))
		}
		return out
	}
	rollout0 := r.stage(step, schema.StageRollout, 0, part(func(x shardManifests) schema.Ref { return x.turns[0] })...)
	sandbox := r.stage(step, schema.StageSandbox, 0, part(func(x shardManifests) schema.Ref { return x.tools[0] })...)
	rollout1 := r.stage(step, schema.StageRollout, 1, part(func(x shardManifests) schema.Ref { return x.turns[1] })...)
	assemble := r.stage(step, schema.StageAssemble, -1,
		part(func(x shardManifests) schema.Ref { return x.assembled[0] })...)
	reward := r.stage(step, schema.StageReward, -1, part(func(x shardManifests) schema.Ref { return x.scored[0] })...)
	var selection []schema.SelectionRow
	var batch []schema.BatchRow
	for _, d := range shards {
		selection, batch = append(selection, d.selection...), append(batch, d.batch...)
	}
	chosen := put(r, r.manifest(schema.At(r.Options.Run, step, schema.StageResample), reward), selection)
	r.spend(schema.StageResample, -1, -1, int64(len(selection)), 0)
	batch = slices.DeleteFunc(batch, func(b schema.BatchRow) bool { return b.Count == 0 })
	inputs, heads := []schema.Ref{rollout0, rollout1, reward, chosen},
		[]schema.Ref{prompts, rollout0, sandbox, rollout1, assemble, reward, chosen}
	if l.Recompute {
		outputs := l.recompute(step, committed, chosen, batch)
		inputs, heads = append(inputs, outputs), append(heads, outputs)
	}
	m := r.manifest(schema.At(r.Options.Run, step, schema.StageAdvantage), inputs...)
	info, err := commit.PutBatch(context.Background(), r.writer, m.Place, batch)
	require.NoError(r.t, err)
	m.Shards = append(m.Shards, info)
	r.spend(schema.StageAdvantage, -1, -1, int64(len(batch)), 0)
	advantage := r.commit(m)
	update := l.update(step, advantage, batch)
	publish := r.publish(step, update)
	r.spend(schema.StagePublish, -1, -1, 0, 0)
	r.headOf(step, append(heads, advantage, update, publish)...)
	r.recordTimings(step, "timings_step")
}

// recompute commits what the policy and a reference compute for the rows of the batch, shard by shard. The rows then
// divide by the policy's log-probabilities.
func (l *large) recompute(step int, committed []shardManifests, chosen schema.Ref, batch []schema.BatchRow) schema.Ref {
	r := l.Run
	before, base := r.Updates[len(r.Updates)-1].Checkpoint.Digest, r.Updates[0].Checkpoint.Digest
	shards := make([][]schema.TokenOutputsRow, len(committed))
	for i := range batch {
		b := &batch[i]
		_, g, _, err := schema.ParseTrajectoryID(b.TrajectoryID)
		require.NoError(r.t, err)
		out := schema.TokenOutputsRow{GroupID: b.GroupID, TrajectoryID: b.TrajectoryID,
			OldLogProbs: l.near(b.OldLogProbs, b.LossMask), PolicyVersion: before,
			ReferenceLogProbs: l.near(b.OldLogProbs, b.LossMask), ReferenceVersion: base, LossMask: b.LossMask}
		b.RolloutLogProbs, b.OldLogProbs, b.ReferenceLogProbs = b.OldLogProbs, out.OldLogProbs, out.ReferenceLogProbs
		shard := g * l.Shards / l.Groups
		shards[shard] = append(shards[shard], out)
	}
	var parts []schema.Ref
	for i, rows := range shards {
		m := r.manifest(schema.At(r.Options.Run, step, schema.StageLogprobs).WithShard(i), committed[i].turns[0],
			committed[i].turns[1], chosen, r.policy)
		parts = append(parts, put(r, m, rows))
		r.spend(schema.StageLogprobs, i, -1, int64(len(rows)), 0)
	}
	return r.stage(step, schema.StageLogprobs, -1, parts...)
}

// near draws log-probabilities near others.
func (l *large) near(logProbs []float32, mask []int32) []float32 {
	out := make([]float32, len(logProbs))
	for i, m := range mask {
		if m == 1 {
			out[i] = float32(math.Min(0, float64(logProbs[i])+0.3*l.rand.NormFloat64()))
		}
	}
	return out
}

func (l *large) commitShard(step, shard int, prompts schema.Ref, d drawn) (out shardManifests) {
	r := l.Run
	at := func(stage string, turn int) schema.Place {
		place := schema.At(r.Options.Run, step, stage).WithShard(shard)
		if turn >= 0 {
			place = place.WithTurn(turn)
		}
		return place
	}
	out.turns = append(out.turns, put(r, r.manifest(at(schema.StageRollout, 0), prompts, r.policy), d.turns[0]))
	r.spend(schema.StageRollout, shard, 0, int64(len(d.turns[0])), 0)
	out.tools = append(out.tools, put(r, r.manifest(at(schema.StageSandbox, 0), prompts, out.turns[0]), d.calls))
	r.spend(schema.StageSandbox, shard, 0, int64(len(d.calls)), 0)
	r.timed = append(r.timed, put(r, r.manifest(at("timings_calls", 0)), d.timings[0]))
	out.turns = append(out.turns, put(r, r.manifest(at(schema.StageRollout, 1), prompts, r.policy, out.turns[0],
		out.tools[0]), d.turns[1]))
	r.spend(schema.StageRollout, shard, 1, int64(len(d.turns[1])), 0)
	out.assembled = append(out.assembled, put(r,
		r.manifest(at(schema.StageAssemble, -1), prompts, out.turns[0], out.turns[1], out.tools[0]), d.trajectories))
	r.spend(schema.StageAssemble, shard, -1, int64(len(d.trajectories)), 0)
	out.scored = append(out.scored, put(r, r.manifest(at(schema.StageReward, -1), out.assembled[0]), d.rewards))
	r.spend(schema.StageReward, shard, -1, int64(len(d.rewards)), 0)
	return out
}

// update commits two optimiser steps, or none where nothing was kept.
func (l *large) update(step int, batch schema.Ref, rows []schema.BatchRow) schema.Ref {
	r := l.Run
	m := r.manifest(schema.At(r.Options.Run, step, schema.StageUpdate), batch, r.policy)
	before := r.Updates[len(r.Updates)-1].Checkpoint.Digest
	checkpoint := r.checkpoint(m.Place, step)
	m.Checkpoint = &checkpoint
	tokens := int64(0)
	for _, b := range rows {
		for _, x := range b.LossMask {
			tokens += int64(x)
		}
	}
	done := float64(step) / float64(l.LargeOptions.Steps)
	var out []schema.UpdateRow
	for i := range 2 {
		above, below := 0.002+0.004*l.rand.Float64()*float64(i), 0.001+0.003*l.rand.Float64()*float64(i)
		out = append(out, schema.UpdateRow{
			OptimizerStep: int64(2*step + i), Minibatch: int32(i), Rows: int32((len(rows) + i) / 2),
			Tokens: tokens / 2,
			Loss:   0.01 * l.rand.NormFloat64(), KL: 0.0004 * float64(i) * l.rand.Float64(), ClipFraction: above +
				below,
			Entropy:  new(0.05 + 0.3*math.Exp(-3*done) + 0.01*l.rand.Float64()),
			RatioMax: 1.5, GradNorm: new(0.6), LR: 1e-3, PolicyBefore: before, ClipFractionPositive: &above,
			ClipFractionNegative: &below,
			BelowPositive:        new(below / 2), AboveNegative: new(above / 2), DualClipFraction: new(0.0),
			AdvantageMean: new(0.05 - 0.05*done), AdvantageStd: new(1 - 0.3*done), AdvantageMin: new(-2.5),
			AdvantageMax:  new(2.5),
			AdvantageZero: new(0.0), AdvantagePositive: new(0.4 + 0.2*done),
		})
	}
	out[1].PolicyAfter = checkpoint.Digest
	r.policy = put(r, m, out)
	r.Updates = append(r.Updates, m)
	r.spend(schema.StageUpdate, -1, -1, int64(len(rows)), tokens)
	return r.policy
}

// evaluate commits four samples and a greedy one of each held-out problem.
func (l *large) evaluate(step int, tag string) {
	r := l.Run
	m := r.manifest(r.place(step, schema.StageEvaluate), r.policy)
	var rows []schema.EvaluationRow
	for p := range l.Problems {
		level := 2 + p%3
		for k := range 5 {
			rows = append(rows, schema.EvaluationRow{
				Tag: tag, ProblemID: fmt.Sprintf("held-out-%04d", p), Level: int32(level), Sample: int32(k % 4),
				Greedy:  k == 4,
				Success: l.rand.Float64() < l.skill(max(step, 0), level), Turns: 1, Tokens: 12, Gold: "4",
				PolicyVersion: r.Updates[len(r.Updates)-1].Checkpoint.Digest,
			})
		}
	}
	r.putEvaluation(m, rows)
}
