package prepare

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that prepare a run and change its recipe, by the names of their activities.
func Stages(d *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.PrepareRun:  stage.Of(PrepareRun{d}.Execute),
		api.AmendRecipe: stage.Of(AmendRecipe{d}.Execute),
	}
}
