// Package warmstart holds the stage that makes a run's first policy.
package warmstart

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that make the first policy, by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.WarmStart: stage.Of(WarmStart{w}.Execute),
	}
}
