package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// A replay through the update trains the policy that the step began with on the replay's batch. It commits a
// *counterfactual* policy, which no step goes on with, and compares it with the run's own after the step.

// findPolicies finds what such a replay trains from and what it is compared with.
func (a PrepareReplay) findPolicies(ctx context.Context, r *replayed) error {
	run, step := r.in.Run, r.in.Step
	own, ref, found, err := a.UpdateOf(ctx, run, step)
	if err != nil {
		return err
	}
	if !found || own.Checkpoint == nil {
		return badinput.Errorf("through: step %d of run %s has trained no policy that a replay of its update could be "+
			"compared with", step, run)
	}
	if err := r.sameModel(); err != nil {
		return err
	}
	began, policy, err := a.PolicyAfter(ctx, run, step-1)
	if err != nil {
		return err
	}
	switch pruned, err := a.anyPruned(ctx, began); {
	case err != nil:
		return err
	case pruned:
		return badinput.Errorf("step: the policy that step %d of run %s began with is pruned; replay the update of a "+
			"step that begins with a checkpoint that the run keeps (checkpoint.every, keep_last and keep_best of its "+
			"recipe)", step, run)
	}
	u := &api.CounterfactualUpdate{Policy: policy, Hosts: r.recipe.Engine.Hosts}
	r.out.Update = u
	if u.Config, err = record.MadeUnder(own); err != nil {
		return err
	}
	if lag := min(r.before.Staleness(), step-1); lag > 0 {
		_, sampling, err := a.PolicyAfter(ctx, run, step-1-lag)
		if err != nil {
			return err
		}
		u.Sampling = &sampling
	}
	if pruned, err := a.anyPruned(ctx, own); pruned || err != nil {
		return err
	}
	u.Own = &api.PolicyRef{Manifest: ref, Digest: own.Checkpoint.Digest, Step: step}
	u.Measured, err = a.measured(ctx, run, step)
	return err
}

// sameModel refuses settings under which the policy that the step began with could not be trained on the step's rows.
func (r *replayed) sameModel() error {
	was, is := r.before, r.recipe
	switch {
	case was.Loss.Value() == nil && is.Loss.Value() != nil:
		return badinput.Errorf("loss.value: the policy that step %d of run %s began with has no critic", r.in.Step,
			r.in.Run)
	case was.Optimizer.Name != is.Optimizer.Name:
		return badinput.Errorf("optimizer.name: the policy that step %d of run %s began with has the state of %s",
			r.in.Step, r.in.Run, was.Optimizer.Name)
	case r.plan.Has(schema.StageAdvantage):
		return nil
	case was.Outputs() != is.Outputs() || !reflect.DeepEqual(was.Loss.KL(), is.Loss.KL()):
		return badinput.Errorf("from: the changed loss needs another batch than the step's: its log-probabilities, " +
			"values or penalty differ; replay from advantage")
	}
	return nil
}

// anyPruned reports whether a checkpoint that a manifest commits is pruned.
func (a PrepareReplay) anyPruned(ctx context.Context, m schema.Manifest) (bool, error) {
	for _, c := range m.Checkpoints() {
		if pruned, err := a.Pruned(ctx, *c); pruned || err != nil {
			return pruned, err
		}
	}
	return false, nil
}

// measured returns the result of the run's own evaluation after a step; nil if the run has made none.
func (a PrepareReplay) measured(ctx context.Context, run string, step int) (*api.EvaluationSummary, error) {
	m, ref, found, err := a.Record.Lookup(ctx, schema.At(run, step, schema.StageEvaluate))
	if err != nil || !found {
		return nil, err
	}
	var out api.Evaluated
	if err := json.Unmarshal([]byte(m.Note[schema.NoteResult]), &out); err != nil {
		return nil, fmt.Errorf("%w: result in %s: %w", commit.ErrDamaged, ref.Key, err)
	}
	return &out.Summary, nil
}
