package activities

import "github.com/ropewalk/ropewalk/internal/step/api"

// prepareStages lists the stages that prepare a run and change its recipe, by the names of their activities.
func prepareStages(d *Deps) map[string]stageActivity {
	return map[string]stageActivity{
		api.PrepareRun:  stageOf(PrepareRun{d}.Execute),
		api.AmendRecipe: stageOf(AmendRecipe{d}.Execute),
	}
}
