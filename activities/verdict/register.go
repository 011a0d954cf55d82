package verdict

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that get verdicts on answers and score them, by the names of their activities.
func Stages(d *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.GradeAnswers: stage.Of(GradeAnswers{d}.Execute),
		api.JudgeAnswers: stage.Of(JudgeAnswers{d}.Execute),
		api.CallFunction: stage.Of(CallFunction{d}.Execute),
		api.ScoreRewards: stage.Of(ScoreRewards{d}.Execute),
	}
}
