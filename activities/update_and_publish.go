package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// UpdateAndPublish runs the last two stages of a step in one activity, because a hop between activities takes as long
// as the publication. Each commits what it commits as an activity of its own, so an attempt after the update publishes
// what was committed. The next rollout has its engine load the policy, wherever that engine is.
type UpdateAndPublish struct{ *Deps }

// Execute updates the policy and commits the step's head.
func (a UpdateAndPublish) Execute(ctx context.Context, in api.FinishInput) (api.Finished, error) {
	var out api.Finished
	d, s := a.Deps, &parts{timeouts: in.Timeouts}
	queue, err := d.together(ctx, in.Scope, func(ctx context.Context) (err error) {
		out.Updated, err = inner(ctx, s, part{api.StageUpdate, api.UpdatePolicy, -1}, UpdatePolicy{d}.Execute,
			in.UpdateInput, (*api.Updated).Its)
		if err != nil {
			return err
		}
		stages := append(in.Stages, api.StageRef{Stage: api.StageUpdate, Ref: out.Manifest})
		out.Published, err = inner(ctx, s, part{api.StagePublish, api.PublishPolicy, -1}, PublishPolicy{d}.Execute,
			api.PublishInput{Scope: in.Scope, Policy: out.Policy, Stages: stages, Unloaded: true},
			(*api.Published).Its)
		return err
	})
	out.Timing.Queue = queue
	return out, err
}
