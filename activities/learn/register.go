package learn

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that lead from rewards to the next policy, by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.CommitStages:        stage.Of(CommitStages{w}.Execute),
		api.Resample:            stage.Of(Resample{w}.Execute),
		api.ComputeTokenOutputs: stage.Of(ComputeTokenOutputs{w}.Execute),
		api.ComputeAdvantages:   stage.Of(ComputeAdvantages{w}.Execute),
		api.UpdateReplayBuffer:  stage.Of(UpdateReplayBuffer{w}.Execute),
		api.UpdatePolicy:        stage.Of(UpdatePolicy{w}.Execute),
		api.PublishPolicy:       stage.Of(PublishPolicy{w}.Execute),
		api.MakeBatch:           stage.Of(MakeBatch{w}.Execute),
		api.UpdateAndPublish:    stage.Of(UpdateAndPublish{w}.Execute),
	}
}
