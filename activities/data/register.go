// Package data holds the stages that decide which tasks a run draws, that draw a step's problems, and that import
// trajectories.
package data

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that decide which tasks a run draws, and the importer, by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.PrepareData:        stage.Of(PrepareData{w}.Execute),
		api.SelectCandidates:   stage.Of(SelectCandidates{w}.Execute),
		api.AnswerTasks:        stage.Of(AnswerTasks{w}.Execute),
		api.SelectPrompts:      stage.Of(NewSelectPrompts(w).Execute),
		api.ImportTrajectories: stage.Of(ImportTrajectories{w}.Execute),
	}
}
