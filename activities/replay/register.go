// Package replay holds the stages that plan, compare and check replays. A replay runs the pure stages of a step again,
// from committed rows, into a generation of its own, and its update, if it is asked to; a check runs the pure stages in
// memory only.
//
// Glossary. A *generation* numbers the manifests of a step: 0 is the run's own, and each replay *claims* the first one
// that is free. *Made* is what a step has committed. A *pure* stage is a function of the record.
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
