package activities

import "github.com/ropewalk/ropewalk/internal/step/api"

// warmstartStages lists the stages that make the first policy, by the names of their activities.
func warmstartStages(d *Deps) map[string]stageActivity {
	return map[string]stageActivity{
		api.WarmStart: stageOf(WarmStart{d}.Execute),
	}
}
