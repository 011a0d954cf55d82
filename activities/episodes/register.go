package episodes

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that take shards from prompts to trajectories, by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.GenerateRollouts:     stage.Of(GenerateRollouts{w}.Execute),
		api.ExecuteToolCalls:     stage.Of(ExecuteToolCalls{w}.Execute),
		api.RunEpisodes:          stage.Of(RunEpisodes{w}.Execute),
		api.AssembleTrajectories: stage.Of(AssembleTrajectories{w}.Execute),
	}
}
