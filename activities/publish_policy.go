package activities

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/schema"
)

// PublishPolicy makes the rollout engine serve the step's policy, unless the next rollout does, and commits the step's
// head.
type PublishPolicy struct{ *Deps }

// Execute publishes first and commits the head afterwards, so that a step with a head is finished.
func (a PublishPolicy) Execute(ctx context.Context, e *Env, in api.PublishInput) (api.Published, error) {
	out := api.Published{}
	inputs, err := a.published(ctx, in)
	if err != nil {
		return out, classify(err)
	}
	s := spec{scope: in.Scope, stage: schema.StagePublish, turn: -1, shard: -1, inputs: inputs}
	err = execute(ctx, a.Deps, e, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.Recipes.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		// Rollouts of an earlier version may still run in a pipelined run.
		if in.Unloaded || recipe.Staleness() > 0 {
			return nil
		}
		sampler, err := w.sampler(ctx, in.Scope, recipe)
		if err != nil {
			return err
		}
		return sampler.Use(ctx, version(in.Policy), func(policy.Sampler) error { return nil })
	})
	if err != nil {
		return out, err
	}
	if e.progress == nil {
		defer heartbeats(ctx, &progress{})() // reading the head's manifests may take longer than the heartbeat timeout
	}
	stages := append(in.Stages, api.StageRef{Stage: schema.StagePublish, Ref: out.Manifest})
	err = a.commitHead(ctx, in.Scope, stages)
	out.Timing.End = time.Now().UnixMicro()
	return out, ownLimit(ctx, classify(err))
}

// published are the inputs of a publication: the policy, and the evaluation before the step, if there is one. No head
// names an evaluation, so the next step's head leads to it through the publication.
func (a PublishPolicy) published(ctx context.Context, in api.PublishInput) ([]schema.Ref, error) {
	inputs := []schema.Ref{in.Policy.Manifest}
	before := spec{scope: in.Scope, stage: schema.StageEvaluate, turn: -1, shard: -1}
	before.scope.Gen = 0
	if before.scope.Step--; before.scope.Step == 0 {
		before.scope.Step = api.InitStep
	}
	_, ref, found, err := a.Record.Lookup(ctx, before.place())
	if err != nil {
		return nil, err
	}
	if found {
		inputs = append(inputs, ref)
	}
	return inputs, nil
}
