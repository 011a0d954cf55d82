// Package upkeep holds the activities that keep runs in order alongside their steps: they prune and merge files, record
// measured times, note what was done to a run, and place the engines of several hosts.
package upkeep

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Stages lists the stages that keep runs in order, next to their steps, by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.PruneCheckpoints: stage.Of(PruneCheckpoints{w}.Execute),
		api.CompactStep:      stage.Of(CompactStep{w}.Execute),
		api.RecordTimings:    stage.Of(RecordTimings{w}.Execute),
		api.NoteState:        stage.Of(NoteState{w}.Execute),
		api.NoteDeed:         stage.Of(NoteDeed{w}.Execute),
		api.FindHome:         stage.Of(FindHome{w}.Execute),
		api.ServeRanks:       stage.Of(ServeRanks{w}.Execute),
	}
}
