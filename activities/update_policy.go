package activities

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// UpdatePolicy takes the policy through one update on the step's batch and commits the new checkpoint.
type UpdatePolicy struct{ *Deps }

// Execute updates. Where the batch has no token in the loss (no group had any variance, or every row is
// masked) and nothing is learnt from again, the policy stays as it is.
func (a UpdatePolicy) Execute(ctx context.Context, in wire.UpdateInput) (wire.Updated, error) {
	out := wire.Updated{}
	s := spec{scope: in.Scope, stage: wire.StageUpdate, turn: -1, shard: -1, inputs: []schema.Ref{in.Batch, in.Policy.Manifest}}
	if in.Buffer != (schema.Ref{}) {
		s.inputs = append(s.inputs, in.Buffer)
	}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		batch, err := a.readBatch(ctx, in.Batch)
		if err != nil {
			return err
		}
		again, err := a.again(ctx, w, in, recipe, &out)
		if err != nil {
			return err
		}
		inLoss := func(row schema.BatchRow) bool { return slices.Contains(row.LossMask, 1) }
		if len(again) == 0 && !slices.ContainsFunc(batch, inLoss) {
			return a.unchanged(ctx, w, in, &out)
		}
		afresh, err := a.afresh(ctx, w, in, recipe)
		if err != nil {
			return err
		}
		trainer, err := w.trainer(ctx, in.Scope, recipe)
		if err != nil {
			return err
		}
		update := func(engine policy.Engine) error {
			trainer.forget() // until the new checkpoint is saved, nothing is known of what is resident
			if afresh {
				trainer.forgetAs(policy.RoleCritic)
			}
			return metered(engine, w, func() error {
				return a.update(ctx, w, trainer, in, recipe, engine, batch, again, afresh, &out)
			})
		}
		if afresh {
			return trainer.useAfresh(ctx, in.Policy, update)
		}
		return trainer.use(ctx, in.Policy, true, update)
	})
	// The manifest's own reference is known only after the commit.
	out.Policy.Manifest = out.Manifest
	return out, err
}

// Where an update starts without the optimiser's state, its manifest says so.
const (
	noteOptimizer  = "optimizer"
	optimizerReset = "reset"
)

// afresh reports whether this is the first update of a stage that resets the optimiser, and notes it. The
// stage's first steps may have left the policy as it was; then it still is the one that the stage began with.
func (a UpdatePolicy) afresh(ctx context.Context, w *draft, in wire.UpdateInput, recipe *recipes.Recipe) (bool, error) {
	first := recipe.OptimizerReset(in.Step)
	if first == 0 {
		return false, nil
	}
	if in.Step > first {
		_, before, err := a.policyAfter(ctx, in.Run, first-1)
		if err != nil {
			return false, fmt.Errorf("find the policy that step %d began with: %w", first, err)
		}
		if before.Digest != in.Policy.Digest {
			return false, nil
		}
	}
	w.manifest.Note = map[string]string{noteOptimizer: optimizerReset}
	return true, nil
}

// again reads what is learnt from again and notes how the buffer stands, where the recipe has one.
func (a UpdatePolicy) again(ctx context.Context, w *draft, in wire.UpdateInput, recipe *recipes.Recipe, out *wire.Updated) ([]schema.BatchRow, error) {
	if recipe.Replay == nil {
		return nil, nil
	}
	if in.Buffer == (schema.Ref{}) {
		return nil, refuse(wire.FailRefused, "the recipe has a replay buffer, and step %d of run %s has committed none", in.Step, in.Run)
	}
	m, err := a.Record.Read(ctx, in.Buffer)
	if err != nil {
		return nil, err
	}
	out.Gamma = new(gamma(recipe, in.Step))
	w.stats = map[string]float64{statGamma: *out.Gamma}
	for _, name := range []string{statBuffered, statP50, statImitated, statReplayed} {
		if x, ok := m.Stats[name]; ok {
			w.stats[name] = x
		}
	}
	return a.readReplayBatch(ctx, m)
}

func (a UpdatePolicy) update(ctx context.Context, w *draft, trainer *slot, in wire.UpdateInput, recipe *recipes.Recipe, engine policy.Engine, batch, again []schema.BatchRow, afresh bool, out *wire.Updated) error {
	coefficient, err := a.klInUpdate(ctx, in.Batch, recipe)
	if err != nil {
		return err
	}
	config, err := learnerConfig(recipe, in.Scope.Step, coefficient)
	if err != nil {
		return err
	}
	config.Imitation = imitation(recipe, in.Scope.Step, config.Objective.Aggregation, again)
	result, err := learner.Update(ctx, engine, batch, config, w.progress.set)
	if err != nil {
		return err
	}
	noteMemory(&w.manifest, noteSmaller, result.Smaller)
	before, err := a.Record.Read(ctx, in.Policy.Manifest)
	if err != nil {
		return err
	}
	saved, err := trainer.save(ctx, w.place, in.Scope.Step, true, before.Checkpoint)
	if err != nil {
		return err
	}
	trainer.resident, trainer.optimizer = saved.Digest, true
	w.manifest.Checkpoint = &saved
	rows := result.Updates
	for i := range rows {
		rows[i].PolicyBefore = in.Policy.Digest
	}
	rows[len(rows)-1].PolicyAfter = saved.Digest
	out.Policy = wire.PolicyRef{Digest: saved.Digest, Step: in.Scope.Step}
	out.Tokens, out.Drift = result.Tokens, result.LogProbDrift
	w.timing.Rows, w.timing.Tokens = int64(result.Rows), result.Tokens
	if recipe.Loss.Value != nil {
		if err := a.updateCritic(ctx, w, trainer, in, recipe, batch, rows, afresh); err != nil {
			return err
		}
	}
	means(out, rows)
	return put(ctx, w, rows)
}

// unchanged commits the old checkpoint as the step's.
func (a UpdatePolicy) unchanged(ctx context.Context, w *draft, in wire.UpdateInput, out *wire.Updated) error {
	before, err := a.Record.Read(ctx, in.Policy.Manifest)
	if err != nil {
		return err
	}
	w.manifest.Checkpoint, w.manifest.Critic = before.Checkpoint, before.Critic
	out.Policy = wire.PolicyRef{Digest: in.Policy.Digest, Step: in.Policy.Step}
	return nil
}

// readBatch returns the batch that a step's advantage stage has committed.
func (d *Deps) readBatch(ctx context.Context, ref schema.Ref) ([]schema.BatchRow, error) {
	m, err := d.Record.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	batch, found, err := d.batchOf(ctx, m, schema.Batch, schema.DecodeBatch)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refuse(wire.FailCorrupt, "%s commits no batch", ref.Key)
	}
	for _, row := range batch {
		if row.OldLogProbs == nil {
			return nil, refuse(wire.FailRefused, "row %s has no log-probabilities of the policy that wrote it (imported); an importance ratio needs them, so such rows cannot be trained on", row.TrajectoryID)
		}
	}
	return batch, nil
}

// batchOf reads the one Arrow shard of a table that a manifest commits, and reports whether it commits any.
func (d *Deps) batchOf(ctx context.Context, m schema.Manifest, table schema.Table, decode func([]byte) ([]schema.BatchRow, error)) (rows []schema.BatchRow, found bool, err error) {
	shards := m.ShardsOf(table)
	if len(shards) == 0 {
		return nil, false, nil
	}
	data, err := d.Record.ReadShard(ctx, shards[0])
	if err != nil {
		return nil, true, err
	}
	if rows, err = decode(data); err != nil {
		return nil, true, fmt.Errorf("%s: %w", shards[0].Key, err)
	}
	return rows, true, nil
}

func stepOptions(o recipes.Optimizer) policy.StepOptions {
	return policy.StepOptions{LR: o.LR, Beta1: o.Beta1, Beta2: o.Beta2, Epsilon: o.Epsilon, WeightDecay: o.WeightDecay, ClipNorm: o.ClipNorm}
}

// means averages the statistics of the optimiser steps on the batch for the step's line.
func means(out *wire.Updated, rows []schema.UpdateRow) {
	out.Advantages, out.Critic = schema.AdvantagesOf(rows), schema.CriticFiguresOf(rows)
	rows = slices.DeleteFunc(slices.Clone(rows), func(r schema.UpdateRow) bool { return r.Source != nil && *r.Source == schema.SourceReplay })
	n := float64(len(rows))
	for _, r := range rows {
		out.Loss += r.Loss / n
		out.KL += r.KL / n
		out.Entropy += r.Entropy / n
		out.ClipFraction += r.ClipFraction / n
		out.GradNorm += r.GradNorm / n
		if r.ReferenceKL != nil {
			out.ReferenceKL = new(*r.ReferenceKL/n + value(out.ReferenceKL))
		}
	}
}

// value is 0 where there is none.
func value(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}
