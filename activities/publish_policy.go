package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/schema"
)

// PublishPolicy makes the rollout engine serve the step's policy, commits the step's head and
// prunes checkpoints that nothing needs any more.
type PublishPolicy struct{ *Deps }

// Execute publishes, then commits; the head comes after the publication so that a step with a
// head is a step that is done.
func (a PublishPolicy) Execute(ctx context.Context, in wire.PublishInput) (wire.Published, error) {
	out := wire.Published{}
	inputs := []schema.Ref{in.Policy.Manifest}
	s := spec{scope: in.Scope, stage: wire.StagePublish, turn: -1, shard: -1, inputs: inputs}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		generator, err := w.generator(ctx, in.Scope, recipe)
		if err != nil {
			return err
		}
		return generator.use(ctx, in.Policy, false, func(policy.Engine) error { return nil })
	})
	if err != nil {
		return out, err
	}
	stages := append(in.Stages, wire.StageRef{Stage: wire.StagePublish, Ref: out.Manifest})
	if err := a.commitHead(ctx, in.Scope, stages); err != nil {
		return out, classify(err)
	}
	recipe, err := a.recipe(ctx, in.Scope)
	if err != nil {
		return out, classify(err)
	}
	out.Pruned, err = a.prune(ctx, in.Scope, recipe)
	return out, classify(err)
}
