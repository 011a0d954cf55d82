// Package learn holds the stages from a step's rewards to its policy: commit, resample, logprobs, advantage, buffer,
// update and publish. The stage contrast compares the policies of a step and of its replay.
//
// Glossary. The replay *buffer* (SPEAR, Algorithm 1) holds trajectories with a positive advantage, with their tokens. A
// *baseline* is the mean reward of a group; the queue holds the latest ones. A full buffer is *consumed*: its
// trajectories are evaluated again, it becomes empty, and the trajectories that are still worth imitating are the
// step's *replay batch*. The rules of the buffer are those of rl/resample; here they meet the rows of the record.
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
		api.ContrastPolicies:    stage.Of(ContrastPolicies{w}.Execute),
		api.PublishPolicy:       stage.Of(PublishPolicy{w}.Execute),
		api.MakeBatch:           stage.Of(MakeBatch{w}.Execute),
		api.UpdateAndPublish:    stage.Of(UpdateAndPublish{w}.Execute),
	}
}
