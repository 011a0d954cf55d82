package activities

import (
	"context"
	"fmt"
	"os"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// The critic's checkpoint is committed by the manifest that commits its policy's: the run's warm start,
// then every update. Whoever has a policy's ref has the critic too, so that it is carried, resumed and
// pruned with the policy.

// firstCritic makes a critic of the warm start's policy: its weights, with a value head of zeros.
func (a WarmStart) firstCritic(ctx context.Context, w *draft, in wire.Scope, recipe *recipes.Recipe, warm schema.Checkpoint) (schema.Checkpoint, error) {
	none := schema.Checkpoint{}
	trainer, err := w.trainer(ctx, in, recipe)
	if err != nil {
		return none, err
	}
	dir, err := os.MkdirTemp(trainer.scratch, "critic-")
	if err != nil {
		return none, fmt.Errorf("make a folder for the first critic: %w", err)
	}
	defer os.RemoveAll(dir)
	trainer.mu.Lock()
	defer trainer.mu.Unlock()
	trainer.forgetAs(policy.RoleCritic)
	if err := trainer.loadFrom(ctx, policy.RoleCritic, warm, dir, false); err != nil {
		return none, err
	}
	return trainer.saveAs(ctx, policy.RoleCritic, w.place, 0, false, nil)
}

// criticOf finds the critic that belongs to a policy.
func (d *Deps) criticOf(ctx context.Context, ref wire.PolicyRef) (wire.PolicyRef, error) {
	m, err := d.Record.Read(ctx, ref.Manifest)
	if err != nil {
		return wire.PolicyRef{}, err
	}
	if m.Critic == nil {
		return wire.PolicyRef{}, refuse(wire.FailRefused, "the recipe needs a critic, and %s commits a policy without one: the run began under a recipe that trains none; run the recipe anew", ref.Manifest.Key)
	}
	return wire.PolicyRef{Manifest: ref.Manifest, Digest: m.Critic.Digest, Step: ref.Step}, nil
}

// updateCritic takes the critic through the update's mini-batches, the same ones in the same order, and
// notes beside each of the policy's steps what the critic's did; afresh, without its optimiser's state. The slot is held by the caller.
func (a UpdatePolicy) updateCritic(ctx context.Context, w *draft, trainer *slot, in wire.UpdateInput, recipe *recipes.Recipe, batch []schema.BatchRow, rows []schema.UpdateRow, afresh bool) error {
	coefficient, err := a.klInUpdate(ctx, in.Batch, recipe)
	if err != nil {
		return err
	}
	config, err := learnerConfig(recipe, in.Scope.Step, coefficient)
	if err != nil {
		return err
	}
	critic, err := criticConfig(recipe, in.Scope.Step)
	if err != nil {
		return err
	}
	before, err := a.criticOf(ctx, in.Policy)
	if err != nil {
		return err
	}
	earlier, err := a.Record.Read(ctx, in.Policy.Manifest)
	if err != nil {
		return err
	}
	return trainer.hold(ctx, policy.RoleCritic, before, !afresh, func(engine policy.Engine) error {
		trainer.forgetAs(policy.RoleCritic) // until it is saved, nothing is known of what is resident
		steps, err := learner.UpdateCritic(ctx, engine, batch, config, critic, w.progress.set)
		if err != nil {
			return err
		}
		saved, err := trainer.saveAs(ctx, policy.RoleCritic, w.place, in.Scope.Step, true, earlier.Critic)
		if err != nil {
			return err
		}
		trainer.others[policy.RoleCritic], trainer.trains[policy.RoleCritic] = saved.Digest, true
		w.manifest.Critic = &saved
		for i, s := range steps {
			rows[i].ValueLoss, rows[i].ValueGradNorm, rows[i].ExplainedVariance = new(s.Loss), new(s.GradNorm), s.ExplainedVariance
			noteMemory(&w.manifest, noteCriticSmaller, s.Smaller)
			rows[i].ValueClipFraction, rows[i].ValueMean, rows[i].ReturnMean = new(s.ClipFraction), new(s.Value), new(s.Return)
		}
		return nil
	})
}
