package replay

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that plan, compare and check replays, by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.PrepareReplay: stage.Of(PrepareReplay{w}.Execute),
		api.CompareReplay: stage.Of(CompareReplay{w}.Execute),
		api.PrepareCheck:  stage.Of(PrepareCheck{w}.Execute),
		api.CheckReplay:   stage.Of(CheckReplay{w}.Execute),
	}
}
