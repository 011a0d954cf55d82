package learn

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/training"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/schema"
)

// UpdatePolicy takes the policy through one update on the step's batch and commits the new checkpoint.
type UpdatePolicy struct{ *stage.Worker }

// Execute updates the policy. If the batch has no token in the loss (no group had any variance, or every row is
// masked) and there is no replay batch, the policy stays unchanged.
func (a UpdatePolicy) Execute(ctx context.Context, e *stage.Env, in api.UpdateInput) (out api.Updated, err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageUpdate, Turn: -1, Shard: -1,
		Inputs: []schema.Ref{in.Batch, in.Policy.Manifest}}
	if in.Buffer != (schema.Ref{}) {
		s.Inputs = append(s.Inputs, in.Buffer)
	}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		batch, err := a.ReadBatch(ctx, in.Batch)
		if err != nil {
			return err
		}
		replayed, err := a.replayBatch(ctx, w, in, &out)
		if err != nil {
			return err
		}
		inLoss := func(row schema.BatchRow) bool { return slices.Contains(row.LossMask, 1) }
		if len(replayed) == 0 && !slices.ContainsFunc(batch, inLoss) {
			return a.unchanged(ctx, w, in, &out)
		}
		resets, err := a.resetsOptimizer(ctx, w, in)
		if err != nil {
			return err
		}
		trainer, err := w.Trainer(ctx, in.Scope, w.Recipe)
		if err != nil {
			return err
		}
		update := func(t policy.Trainer) error {
			trainer.Forget(policy.RolePolicy) // until the new checkpoint is saved, the resident state is unknown
			if resets {
				trainer.Forget(policy.RoleCritic)
			}
			return stage.Metered(t, w, func() error {
				return a.update(ctx, w, trainer, in, t, batch, replayed, resets, &out)
			})
		}
		if resets {
			return trainer.UseReset(ctx, stage.Version(in.Policy), update)
		}
		return trainer.Use(ctx, policy.RolePolicy, stage.Version(in.Policy), true, update)
	})
	// The manifest's own reference is known only after the commit.
	out.Policy.Manifest = out.Manifest
	return out, err
}

// statGamma is the weight of the imitation in an update's manifest.
const statGamma = "gamma"

// Note of an update that starts without the optimiser's state.
const (
	noteOptimizer  = "optimizer"
	optimizerReset = "reset"
)

// resetsOptimizer reports whether this is the first update of a stage that resets the optimiser, and records it. The
// stage's first steps may have left the policy unchanged; then it is still the policy that the stage began with.
func (a UpdatePolicy) resetsOptimizer(ctx context.Context, w *stage.Draft, in api.UpdateInput) (bool, error) {
	first := w.Recipe.Schedule.OptimizerReset(in.Step)
	if first == 0 {
		return false, nil
	}
	if in.Step > first {
		_, before, err := a.PolicyAfter(ctx, in.Run, first-1)
		if err != nil {
			return false, fmt.Errorf("find the policy that step %d began with: %w", first, err)
		}
		if before.Digest != in.Policy.Digest {
			return false, nil
		}
	}
	w.Manifest.Note = map[string]string{noteOptimizer: optimizerReset}
	return true, nil
}

// replayBatch reads the replay batch and records the state of the buffer, if the recipe has one.
func (a UpdatePolicy) replayBatch(ctx context.Context, w *stage.Draft, in api.UpdateInput,
	out *api.Updated) ([]schema.BatchRow, error) {
	if w.Recipe.Replay == nil {
		return nil, nil
	}
	if in.Buffer == (schema.Ref{}) {
		return nil, refusal.Unusablef("the recipe has a replay buffer, and step %d of run %s has "+
			"committed none", in.Step, in.Run)
	}
	m, err := a.Record.Read(ctx, in.Buffer)
	if err != nil {
		return nil, err
	}
	out.Gamma = new(training.Gamma(w.Recipe, in.Step))
	w.Stats = map[string]float64{statGamma: *out.Gamma}
	for _, name := range []string{StatBuffered, StatP50,
		StatImitated, StatReplayed} {
		if x, ok := m.Stats[name]; ok {
			w.Stats[name] = x
		}
	}
	return a.ReadReplayBatch(ctx, m)
}

func (a UpdatePolicy) update(ctx context.Context, w *stage.Draft, trainer *enginepool.Trainer, in api.UpdateInput,
	t policy.Trainer, batch, replayed []schema.BatchRow, resets bool, out *api.Updated) error {
	coefficient, err := klInUpdate(ctx, a.Worker.Records, in.Batch, w.Recipe)
	if err != nil {
		return err
	}
	config, err := training.Update(w.Recipe, in.Scope.Step, coefficient)
	if err != nil {
		return err
	}
	config.Imitation = training.Imitation(w.Recipe, in.Scope.Step, config.Objective.Aggregation, replayed)
	result, err := learner.Update(ctx, t, batch, config, w.Progress.Set)
	if err != nil {
		return err
	}
	stage.NoteMemory(&w.Manifest, stage.NoteSmaller, result.Smaller)
	before, err := a.Record.Read(ctx, in.Policy.Manifest)
	if err != nil {
		return err
	}
	saved, err := trainer.Save(ctx, policy.RolePolicy, w.Place, in.Scope.Step, true, before.Checkpoint)
	if err != nil {
		return err
	}
	trainer.Mark(policy.RolePolicy, saved.Digest, true)
	w.Manifest.Checkpoint = &saved
	rows := result.Updates
	for i := range rows {
		rows[i].PolicyBefore = in.Policy.Digest
	}
	rows[len(rows)-1].PolicyAfter = saved.Digest
	out.Policy = api.PolicyRef{Digest: saved.Digest, Step: in.Scope.Step}
	out.Tokens, out.Drift = result.Tokens, result.LogProbDrift
	w.Timing.Rows, w.Timing.Tokens = int64(result.Rows), result.Tokens
	if w.Recipe.Loss.Value() != nil {
		if err := a.updateCritic(ctx, w, trainer, in, batch, rows, resets); err != nil {
			return err
		}
	}
	f := training.FiguresOf(rows)
	out.Loss, out.KL, out.Entropy, out.ClipFraction, out.GradNorm = f.Loss, f.KL, f.Entropy, f.ClipFraction, f.GradNorm
	out.ReferenceKL, out.Advantages, out.Critic = f.ReferenceKL, schema.AdvantagesOf(rows), schema.CriticFiguresOf(rows)
	return stage.Put(ctx, w, rows)
}

// unchanged commits the old checkpoint as the step's.
func (a UpdatePolicy) unchanged(ctx context.Context, w *stage.Draft, in api.UpdateInput, out *api.Updated) error {
	before, err := a.Record.Read(ctx, in.Policy.Manifest)
	if err != nil {
		return err
	}
	w.Manifest.Checkpoint, w.Manifest.Critic = before.Checkpoint, before.Critic
	out.Policy = api.PolicyRef{Digest: in.Policy.Digest, Step: in.Policy.Step}
	return nil
}
