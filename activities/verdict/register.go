// Package verdict holds the stages that get verdicts on answers, and the stage that computes rewards from them.
//
// Glossary. A *verdict* (a wrong answer, a program that fails) is data; breakage is an error. A *source* of verdicts is
// a stage: the sandbox grades answers, a judge is asked, or the user's function is called.
package verdict

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that get verdicts on answers and score them, by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.GradeAnswers: stage.Of(GradeAnswers{w}.Execute),
		api.JudgeAnswers: stage.Of(JudgeAnswers{w}.Execute),
		api.CallFunction: stage.Of(CallFunction{w}.Execute),
		api.ScoreRewards: stage.Of(ScoreRewards{w}.Execute),
	}
}
