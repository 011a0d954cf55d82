// Package prepare holds the stages that begin a run: it resolves, checks and commits the recipe, takes the model that
// the recipe names into the store, and changes the recipe of a live run.
package prepare

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that prepare a run and change its recipe, by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.PrepareRun:  stage.Of(PrepareRun{w}.Execute),
		api.AmendRecipe: stage.Of(AmendRecipe{w}.Execute),
	}
}
