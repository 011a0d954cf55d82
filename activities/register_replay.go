package activities

import "github.com/ropewalk/ropewalk/internal/step/api"

// replayStages lists the stages that plan, compare and check replays, by the names of their activities.
func replayStages(d *Deps) map[string]stageActivity {
	return map[string]stageActivity{
		api.PrepareReplay: stageOf(PrepareReplay{d}.Execute),
		api.CompareReplay: stageOf(CompareReplay{d}.Execute),
		api.PrepareCheck:  stageOf(PrepareCheck{d}.Execute),
		api.CheckReplay:   stageOf(CheckReplay{d}.Execute),
	}
}
