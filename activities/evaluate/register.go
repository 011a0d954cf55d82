package evaluate

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that measure policies, by the names of their activities.
func Stages(d *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.Evaluate:         stage.Of(Evaluate{d}.Execute),
		api.EvaluateUntaught: stage.Of(EvaluateUntaught{d}.Execute),
		api.EvaluateShard:    stage.Of(EvaluateShard{d}.Execute),
	}
}
