package upkeep

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that keep runs in order, next to their steps, by the names of their activities.
func Stages(d *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.PruneCheckpoints: stage.Of(PruneCheckpoints{d}.Execute),
		api.CompactStep:      stage.Of(CompactStep{d}.Execute),
		api.RecordTimings:    stage.Of(RecordTimings{d}.Execute),
		api.NoteState:        stage.Of(NoteState{d}.Execute),
		api.NoteDeed:         stage.Of(NoteDeed{d}.Execute),
		api.FindHome:         stage.Of(FindHome{d}.Execute),
		api.ServeRanks:       stage.Of(ServeRanks{d}.Execute),
	}
}
