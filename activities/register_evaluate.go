package activities

import "github.com/ropewalk/ropewalk/internal/step/api"

// evaluateStages lists the stages that measure policies, by the names of their activities.
func evaluateStages(d *Deps) map[string]stageActivity {
	return map[string]stageActivity{
		api.Evaluate:         stageOf(Evaluate{d}.Execute),
		api.EvaluateUntaught: stageOf(EvaluateUntaught{d}.Execute),
		api.EvaluateShard:    stageOf(EvaluateShard{d}.Execute),
	}
}
