package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/api"
)

// UpdateAndPublish runs the last two stages of a step in one activity, because a hop between activities takes as long
// as the publication. Each commits what it commits as an activity of its own, so an attempt after the update publishes
// what was committed. The next rollout has its engine load the policy, wherever that engine is.
type UpdateAndPublish struct{ *Deps }

// Execute updates the policy and commits the step's head.
func (a UpdateAndPublish) Execute(ctx context.Context, in api.FinishInput) (out api.Finished, err error) {
	d, s := a.Deps, &parts{timeouts: in.Timeouts}
	own := api.Timing{Shard: -1, Turn: -1}
	err = d.tracked(ctx, in.Scope, &own, func(ctx context.Context, p *progress) (err error) {
		ctx = within(ctx, p)
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
	out.Timing.Queue = own.Queue
	return out, err
}
