package upkeep

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// NoteState notes in the record how a run is, for listings by readers who ask no Temporal server.
type NoteState struct{ *stage.Worker }

// Execute writes the note. Every attempt writes the same one.
func (a NoteState) Execute(ctx context.Context, e *stage.Env, in api.StateInput) (api.Done, error) {
	note := schema.NewStateNote(in.State, in.Kind, in.Reason, time.UnixMicro(in.At))
	if err := a.NoteState(ctx, in.Run, note); err != nil {
		return api.Done{}, err
	}
	a.Counts.Entered(in.State)
	return api.Done{}, nil
}
