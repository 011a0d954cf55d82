package learn

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/schema"
)

// PublishPolicy makes the rollout engine serve the step's policy, unless the next rollout does, and commits the step's
// head.
type PublishPolicy struct{ *stage.Worker }

// Execute publishes first and commits the head afterwards, so that a step with a head is finished.
func (a PublishPolicy) Execute(ctx context.Context, e *stage.Env, in api.PublishInput) (api.Published, error) {
	out := api.Published{}
	inputs, err := a.published(ctx, in)
	if err != nil {
		return out, failure.Classify(err)
	}
	s := stage.Spec{Scope: in.Scope, Stage: schema.StagePublish, Turn: -1, Shard: -1, Inputs: inputs}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		// Rollouts of an earlier version may still run in a pipelined run.
		if in.Unloaded || w.Recipe.Staleness() > 0 {
			return nil
		}
		sampler, err := w.Sampler(ctx, in.Scope, w.Recipe)
		if err != nil {
			return err
		}
		return sampler.Use(ctx, stage.Version(in.Policy), func(policy.Sampler) error { return nil })
	})
	if err != nil {
		return out, err
	}
	if e.Progress == nil {
		// reading the head's manifests may take longer than the heartbeat timeout
		defer stage.Heartbeats(ctx, &stage.Progress{})()
	}
	stages := append(in.Stages, api.StageRef{Stage: schema.StagePublish, Ref: out.Manifest})
	err = a.CommitHead(ctx, in.Scope, stages)
	out.Timing.End = time.Now().UnixMicro()
	return out, failure.OwnLimit(ctx, failure.Classify(err))
}

// published are the inputs of a publication: the policy, and the evaluation before the step, if there is one. No head
// names an evaluation, so the next step's head leads to it through the publication.
func (a PublishPolicy) published(ctx context.Context, in api.PublishInput) ([]schema.Ref, error) {
	inputs := []schema.Ref{in.Policy.Manifest}
	before := stage.Spec{Scope: in.Scope, Stage: schema.StageEvaluate, Turn: -1, Shard: -1}
	before.Scope.Gen = 0
	if before.Scope.Step--; before.Scope.Step == 0 {
		before.Scope.Step = api.InitStep
	}
	_, ref, found, err := a.Record.Lookup(ctx, before.Place())
	if err != nil {
		return nil, err
	}
	if found {
		inputs = append(inputs, ref)
	}
	return inputs, nil
}
