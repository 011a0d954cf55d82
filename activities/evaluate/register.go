// Package evaluate holds the stages that measure a policy on held-out problems.
package evaluate

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that measure policies, by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.Evaluate:        stage.Of(Evaluate{w}.Execute),
		api.EvaluateInitial: stage.Of(EvaluateInitial{w}.Execute),
		api.EvaluateFactual: stage.Of(EvaluateFactual{w}.Execute),
		api.EvaluateShard:   stage.Of(EvaluateShard{w}.Execute),
	}
}
