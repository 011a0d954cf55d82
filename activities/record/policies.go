package record

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// PolicyAfter finds the checkpoint that a step left; step 0 means the warm start.
func (r Records) PolicyAfter(ctx context.Context, run string, step int) (m schema.Manifest, out api.PolicyRef,
	err error) {
	out.Step = step
	found := false
	if step == 0 {
		m, out.Manifest, found, err = r.Record.Lookup(ctx, schema.AtInit(run, schema.StageWarmStart))
	} else {
		m, out.Manifest, found, err = r.UpdateOf(ctx, run, step)
	}
	if err != nil {
		return m, out, err
	}
	if !found || m.Checkpoint == nil {
		return m, out, refusal.Corruptf("run %s commits no checkpoint of the policy after step %d", run, step)
	}
	out.Digest = m.Checkpoint.Digest
	return m, out, nil
}

// Reference finds the checkpoint that is the reference policy of a step.
func (r Records) Reference(ctx context.Context, scope api.Scope, recipe *recipes.Recipe) (api.PolicyRef, error) {
	step := recipe.ReferenceStep(scope.Step)
	m, out, err := r.PolicyAfter(ctx, scope.Run, step)
	if err != nil {
		return out, fmt.Errorf("find the reference of step %d: %w", scope.Step, err)
	}
	pruned, err := r.Store.List(ctx, m.Checkpoint.Prefix+schema.PrunedFile)
	if err != nil {
		return out, fmt.Errorf("find the reference of step %d: %w", scope.Step, err)
	}
	if len(pruned) > 0 {
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

// LastStep returns a run's last finished step, 0 if it has finished none.
func (r Records) LastStep(ctx context.Context, run string) (last int, err error) {
	heads, err := r.Store.List(ctx, schema.HeadsPrefix(run))
	if err != nil {
		return 0, fmt.Errorf("list heads of run %s: %w", run, err)
	}
	for _, o := range heads {
		_, step, err := schema.ParseHeadKey(o.Key)
		if err != nil {
			return 0, err
		}
		if n, err := strconv.Atoi(step); err == nil {
			last = max(last, n)
		}
	}
	return last, nil
}
