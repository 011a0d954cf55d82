package learn

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// MakeBatch runs the short stages between a step's rollout and its update in one activity. Each stage commits what it
// commits as an activity of its own, so an attempt continues after the last manifest of an earlier one, and a replay
// makes the stages one by one. Nothing runs between two activities of a step, and these stages take less time than
// that.
type MakeBatch struct{ *stage.Worker }

// Execute runs the stages that the input names.
func (a MakeBatch) Execute(ctx context.Context, _ *stage.Env, in api.BatchInput) (out api.Batch, err error) {
	err = a.Group(ctx, in.Scope, -1, in.Sent, &out.Spent,
		func(r *stage.Runner) error { return step.Batch.Body(r, &in, &out) })
	return out, err
}

// UpdateAndPublish runs the last two stages of a step in one activity, because a hop between activities takes as long
// as the publication. Each commits what it commits as an activity of its own, so an attempt after the update publishes
// what was committed. The next rollout has its engine load the policy, wherever that engine is.
type UpdateAndPublish struct{ *stage.Worker }

// Execute updates the policy and commits the step's head.
func (a UpdateAndPublish) Execute(ctx context.Context, _ *stage.Env, in api.FinishInput) (out api.Finished, err error) {
	err = a.Group(ctx, in.Scope, -1, in.Sent, &out.Spent,
		func(r *stage.Runner) error { return step.Finish.Body(r, &in, &out) })
	return out, err
}
