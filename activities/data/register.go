package data

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that decide which tasks a run draws, and the importer, by the names of their activities.
func Stages(d *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.PrepareData:        stage.Of(PrepareData{d}.Execute),
		api.SelectCandidates:   stage.Of(SelectCandidates{d}.Execute),
		api.AnswerTasks:        stage.Of(AnswerTasks{d}.Execute),
		api.SelectPrompts:      stage.Of(NewSelectPrompts(d).Execute),
		api.ImportTrajectories: stage.Of(ImportTrajectories{d}.Execute),
	}
}
