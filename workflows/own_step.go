package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// mostOwnShards is how many shards a step may have that the run takes itself. It bounds the history: each shard adds 6
// events to a step.
const mostOwnShards = 4

// takesItself reports whether the run runs a step's activities itself and starts no child workflow for it. The next
// step waits for the hop from one child to the next, which takes as long as several short stages.
func takesItself(plan api.Plan) bool {
	return fewActivities(plan) && plan.Interleaved && plan.Staleness == 0 && plan.Shards <= mostOwnShards
}

// ownStep takes a step as TrainStep does, within the run's workflow. The run shows the stage that fails.
func (r *trainRun) ownStep(ctx workflow.Context, in TrainStepInput) (TrainStepResult, error) {
	if r.progress.Stage != schema.StageRollout { // an attempt has failed
		r.stage(ctx, in.Step, schema.StageRollout)
	}
	s := newTrainStep(ctx, in)
	s.at.shown = func(ctx workflow.Context, stage string) { r.at(ctx, in.Step, stage) }
	s.prefix = fmt.Sprintf("step %d: ", in.Step)
	out, err := s.execute()
	if err != nil && !temporal.IsCanceledError(err) {
		all := failures(err, s.at.stage)
		r.stage(ctx, in.Step, all[0].Stage)
		return TrainStepResult{}, ownStepError{all}
	}
	return out, err
}

// ownStepError says which stages of a step failed that the run took itself.
type ownStepError struct{ all []StageFailure }

func (e ownStepError) Error() string { return stepFailed(e.all).Error() }
