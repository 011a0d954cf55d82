package activities

import "github.com/ropewalk/ropewalk/internal/step/api"

// learnStages lists the stages that lead from rewards to the next policy, by the names of their activities.
func learnStages(d *Deps) map[string]stageActivity {
	return map[string]stageActivity{
		api.CommitStages:        stageOf(CommitStages{d}.Execute),
		api.Resample:            stageOf(Resample{d}.Execute),
		api.ComputeTokenOutputs: stageOf(ComputeTokenOutputs{d}.Execute),
		api.ComputeAdvantages:   stageOf(ComputeAdvantages{d}.Execute),
		api.UpdateReplayBuffer:  stageOf(UpdateReplayBuffer{d}.Execute),
		api.UpdatePolicy:        stageOf(UpdatePolicy{d}.Execute),
		api.PublishPolicy:       stageOf(PublishPolicy{d}.Execute),
		api.MakeBatch:           stageOf(MakeBatch{d}.Execute),
		api.UpdateAndPublish:    stageOf(UpdateAndPublish{d}.Execute),
	}
}
