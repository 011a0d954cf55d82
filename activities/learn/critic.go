package learn

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/training"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/schema"
)

// The manifest that commits a policy's checkpoint also commits the critic's: first the run's warm start, then every
// update. So a policy's ref also leads to its critic, and the critic is carried, resumed and pruned with the policy.

// updateCritic takes the critic through the update's mini-batches, the same ones in the same order. It adds the
// critic's figures to the rows of the policy's steps. With resets, the critic starts without its optimiser's state.
// The caller is inside trainer.Use.
func (a UpdatePolicy) updateCritic(ctx context.Context, w *stage.Draft, trainer *enginepool.Trainer, in api.UpdateInput,
	batch []schema.BatchRow, rows []schema.UpdateRow, resets bool) error {
	coefficient, err := klInUpdate(ctx, a.Worker.Records, in.Batch, w.Recipe)
	if err != nil {
		return err
	}
	config, err := training.Update(w.Recipe, in.Scope.Step, coefficient)
	if err != nil {
		return err
	}
	critic, err := training.Critic(w.Recipe, in.Scope.Step)
	if err != nil {
		return err
	}
	before, err := a.CriticOf(ctx, in.Policy)
	if err != nil {
		return err
	}
	earlier, err := a.Record.Read(ctx, in.Policy.Manifest)
	if err != nil {
		return err
	}
	return trainer.Within(ctx, policy.RoleCritic, stage.Version(before), !resets, func(t policy.Trainer) error {
		trainer.Forget(policy.RoleCritic) // until the critic is saved, the resident state is unknown
		steps, err := learner.UpdateCritic(ctx, t, batch, config, critic, w.Progress.Set)
		if err != nil {
			return err
		}
		saved, err := trainer.Save(ctx, policy.RoleCritic, w.Place, in.Scope.Step, true, earlier.Critic)
		if err != nil {
			return err
		}
		trainer.Mark(policy.RoleCritic, saved.Digest, true)
		w.Manifest.Critic = &saved
		for i, s := range steps {
			rows[i].ValueLoss, rows[i].ValueGradNorm, rows[i].ExplainedVariance = new(s.Loss), new(s.GradNorm),
				s.ExplainedVariance
			stage.NoteMemory(&w.Manifest, stage.NoteCriticSmaller, s.Smaller)
			rows[i].ValueClipFraction, rows[i].ValueMean, rows[i].ReturnMean = new(s.ClipFraction), new(s.Value),
				new(s.Return)
		}
		return nil
	})
}
