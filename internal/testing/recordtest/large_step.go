package recordtest

import (
	"fmt"
	"math"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// finish commits a drawn step: its shards, stage manifests, selection, batch, update and head.
func (l *large) finish(step int, prompts schema.Ref, shards []drawn) {
	r := l.Run
	var all shardManifests
	var selection []schema.SelectionRow
	var batch []schema.BatchRow
	for i, d := range shards {
		r.commitShard(&all, step, i, prompts, d.rows, [2]int64{})
		selection, batch = append(selection, d.selection...), append(batch, d.batch...)
	}
	inputs, heads := r.selected(step, prompts, all, selection)
	batch = slices.DeleteFunc(batch, func(b schema.BatchRow) bool { return b.Count == 0 })
	if l.Recompute {
		outputs := l.recompute(step, all.turns, inputs[len(inputs)-1], batch)
		inputs, heads = append(inputs, outputs), append(heads, outputs)
	}
	r.spend(schema.StageAdvantage, -1, -1, int64(len(batch)), 0)
	advantage := r.putBatch(r.manifest(schema.At(r.Options.Run, step, schema.StageAdvantage), inputs...), batch)
	update := l.update(step, advantage, batch)
	publish := r.publish(step, update)
	r.spend(schema.StagePublish, -1, -1, 0, 0)
	r.headOf(step, append(heads, advantage, update, publish)...)
	r.recordTimings(step, "timings_step")
}

// recompute commits what the policy and a reference compute for the rows of the batch, shard by shard. The rows then
// divide by the policy's log-probabilities.
func (l *large) recompute(step int, turns [2][]schema.Ref, chosen schema.Ref, batch []schema.BatchRow) schema.Ref {
	r := l.Run
	before, base := r.Updates[len(r.Updates)-1].Checkpoint.Digest, r.Updates[0].Checkpoint.Digest
	shards := make([][]schema.TokenOutputsRow, l.Shards)
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
	return r.putOutputs(step, turns, chosen, shards)
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

// update commits two optimiser steps, or none where nothing was kept.
func (l *large) update(step int, batch schema.Ref, rows []schema.BatchRow) schema.Ref {
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
			RatioMax: 1.5, GradNorm: new(0.6), LR: 1e-3, ClipFractionPositive: &above,
			ClipFractionNegative: &below,
			BelowPositive:        new(below / 2), AboveNegative: new(above / 2), DualClipFraction: new(0.0),
			AdvantageMean: new(0.05 - 0.05*done), AdvantageStd: new(1 - 0.3*done), AdvantageMin: new(-2.5),
			AdvantageMax:  new(2.5),
			AdvantageZero: new(0.0), AdvantagePositive: new(0.4 + 0.2*done),
		})
	}
	return l.putUpdate(step, out, int64(len(rows)), tokens, batch)
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
