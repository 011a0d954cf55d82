// Package episodes holds the stages that take a shard from its prompts to its trajectories, one by one or, in mode
// interleaved, within one activity.
//
// Glossary. A *flow* takes the episodes of a shard to their ends while the stages commit their turns. A *segment* keeps
// finished turns that are not committed yet.
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
