package activities

import "github.com/ropewalk/ropewalk/internal/step/api"

// dataStages lists the stages that decide which tasks a run draws, and import trajectories, by the names of their activities.
func dataStages(d *Deps) map[string]stageActivity {
	return map[string]stageActivity{
		api.PrepareData:        stageOf(PrepareData{d}.Execute),
		api.SelectCandidates:   stageOf(SelectCandidates{d}.Execute),
		api.AnswerTasks:        stageOf(AnswerTasks{d}.Execute),
		api.SelectPrompts:      stageOf(NewSelectPrompts(d).Execute),
		api.ImportTrajectories: stageOf(ImportTrajectories{d}.Execute),
	}
}
