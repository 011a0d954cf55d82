package activities

import "github.com/ropewalk/ropewalk/internal/step/api"

// upkeepStages lists the stages that keep runs in order, next to their steps, by the names of their activities.
func upkeepStages(d *Deps) map[string]stageActivity {
	return map[string]stageActivity{
		api.PruneCheckpoints: stageOf(PruneCheckpoints{d}.Execute),
		api.CompactStep:      stageOf(CompactStep{d}.Execute),
		api.RecordTimings:    stageOf(RecordTimings{d}.Execute),
		api.NoteState:        stageOf(NoteState{d}.Execute),
		api.NoteDeed:         stageOf(NoteDeed{d}.Execute),
		api.FindHome:         stageOf(FindHome{d}.Execute),
		api.ServeRanks:       stageOf(ServeRanks{d}.Execute),
	}
}
