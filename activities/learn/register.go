package learn

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that lead from rewards to the next policy, by the names of their activities.
func Stages(d *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.CommitStages:        stage.Of(CommitStages{d}.Execute),
		api.Resample:            stage.Of(Resample{d}.Execute),
		api.ComputeTokenOutputs: stage.Of(ComputeTokenOutputs{d}.Execute),
		api.ComputeAdvantages:   stage.Of(ComputeAdvantages{d}.Execute),
		api.UpdateReplayBuffer:  stage.Of(UpdateReplayBuffer{d}.Execute),
		api.UpdatePolicy:        stage.Of(UpdatePolicy{d}.Execute),
		api.PublishPolicy:       stage.Of(PublishPolicy{d}.Execute),
		api.MakeBatch:           stage.Of(MakeBatch{d}.Execute),
		api.UpdateAndPublish:    stage.Of(UpdateAndPublish{d}.Execute),
	}
}
