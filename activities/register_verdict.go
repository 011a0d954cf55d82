package activities

import "github.com/ropewalk/ropewalk/internal/step/api"

// verdictStages lists the stages that get verdicts on answers and score them, by the names of their activities.
func verdictStages(d *Deps) map[string]stageActivity {
	return map[string]stageActivity{
		api.GradeAnswers: stageOf(GradeAnswers{d}.Execute),
		api.JudgeAnswers: stageOf(JudgeAnswers{d}.Execute),
		api.CallFunction: stageOf(CallFunction{d}.Execute),
		api.ScoreRewards: stageOf(ScoreRewards{d}.Execute),
	}
}
