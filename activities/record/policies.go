package record

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// FindPolicy finds the checkpoint that a step left; step 0 means the warm start. found is false if there is none.
func (r Records) FindPolicy(ctx context.Context, run string, step int) (m schema.Manifest, out api.PolicyRef,
	found bool, err error) {
	out.Step = step
	if step == 0 {
		m, out.Manifest, found, err = r.Record.Lookup(ctx, schema.AtInit(run, schema.StageWarmStart))
	} else {
		m, out.Manifest, found, err = r.UpdateOf(ctx, run, step)
	}
	if err != nil || m.Checkpoint == nil {
		return m, out, false, err
	}
	out.Digest = m.Checkpoint.Digest
	return m, out, found, nil
}

// PolicyAfter is FindPolicy for a step that must have left a checkpoint.
func (r Records) PolicyAfter(ctx context.Context, run string, step int) (schema.Manifest, api.PolicyRef, error) {
	m, out, found, err := r.FindPolicy(ctx, run, step)
	if err == nil && !found {
		err = refusal.Corruptf("run %s commits no checkpoint of the policy after step %d", run, step)
	}
	return m, out, err
}

// Pruned reports whether a checkpoint's files are pruned.
func (r Records) Pruned(ctx context.Context, c schema.Checkpoint) (bool, error) {
	notes, err := r.Store.List(ctx, c.Prefix+schema.PrunedFile)
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", c.Prefix, err)
	}
	return len(notes) > 0, nil
}

// Reference finds the checkpoint that is the reference policy of a step.
func (r Records) Reference(ctx context.Context, scope api.Scope, recipe *recipes.Recipe) (api.PolicyRef, error) {
	step := recipe.ReferenceStep(scope.Step)
	m, out, err := r.PolicyAfter(ctx, scope.Run, step)
	if err != nil {
		return out, fmt.Errorf("find the reference of step %d: %w", scope.Step, err)
	}
	pruned, err := r.Pruned(ctx, *m.Checkpoint)
	if err != nil {
		return out, fmt.Errorf("find the reference of step %d: %w", scope.Step, err)
	}
	if pruned {
		return out,
			refusal.Unusablef("the reference of step %d is the policy after step %d, whose checkpoint is pruned; "+
				"choose another loss.reference.refresh_every or schedule.stages", scope.Step, step)
	}
	return out, nil
}

// UpdateOf returns the update manifest that a finished step's head names.
func (r Records) UpdateOf(ctx context.Context, run string, step int) (m schema.Manifest, ref schema.Ref, found bool,
	err error) {
	head, _, found, err := r.Record.Head(ctx, run, strconv.Itoa(step))
	if err != nil || !found || len(head.Stages[schema.StageUpdate]) == 0 {
		return m, ref, false, err
	}
	ref = head.Stages[schema.StageUpdate][0]
	m, err = r.Record.Read(ctx, ref)
	return m, ref, err == nil, err
}

// CriticOf finds the critic that belongs to a policy.
func (r Records) CriticOf(ctx context.Context, ref api.PolicyRef) (api.PolicyRef, error) {
	m, err := r.Record.Read(ctx, ref.Manifest)
	if err != nil {
		return api.PolicyRef{}, err
	}
	if m.Critic == nil {
		return api.PolicyRef{},
			refusal.Unusablef("the recipe needs a critic, and %s commits a policy without one: the run began under a "+
				"recipe that trains none; run the recipe again", ref.Manifest.Key)
	}
	return api.PolicyRef{Manifest: ref.Manifest, Digest: m.Critic.Digest, Step: ref.Step}, nil
}

// Steps returns a run's finished steps, in order.
func (r Records) Steps(ctx context.Context, run string) ([]int, error) {
	heads, err := r.Store.List(ctx, schema.HeadsPrefix(run))
	if err != nil {
		return nil, fmt.Errorf("list heads of run %s: %w", run, err)
	}
	var steps []int
	for _, o := range heads {
		_, step, err := schema.ParseHeadKey(o.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: list heads of run %s: %w", commit.ErrDamaged, run, err)
		}
		if n, err := strconv.Atoi(step); err == nil {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// LastStep returns a run's last finished step, 0 if it has finished none.
func (r Records) LastStep(ctx context.Context, run string) (int, error) {
	steps, err := r.Steps(ctx, run)
	if err != nil || len(steps) == 0 {
		return 0, err
	}
	return steps[len(steps)-1], nil
}
