package activities

import "github.com/ropewalk/ropewalk/internal/step/api"

// episodesStages lists the stages that take shards from prompts to trajectories, by the names of their activities.
func episodesStages(d *Deps) map[string]stageActivity {
	return map[string]stageActivity{
		api.GenerateRollouts:     stageOf(GenerateRollouts{d}.Execute),
		api.ExecuteToolCalls:     stageOf(ExecuteToolCalls{d}.Execute),
		api.RunEpisodes:          stageOf(RunEpisodes{d}.Execute),
		api.AssembleTrajectories: stageOf(AssembleTrajectories{d}.Execute),
	}
}
