package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// NoteState notes in the record how a run is, for listings by readers who ask no Temporal server.
type NoteState struct{ *Deps }

// Execute writes the note. Every attempt writes the same one.
func (a NoteState) Execute(ctx context.Context, e *Env, in api.StateInput) (api.Done, error) {
	note := schema.NewStateNote(in.State, in.Kind, in.Reason, time.UnixMicro(in.At))
	if err := a.noteState(ctx, in.Run, note); err != nil {
		return api.Done{}, err
	}
	a.stages.Entered(in.State)
	return api.Done{}, nil
}

func (d *Deps) noteState(ctx context.Context, run string, note schema.StateNote) error {
	text, err := schema.Canonical(note)
	if err != nil {
		return err
	}
	err = d.Store.PutIfAbsent(ctx, schema.StateKey(run, note), text)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note that run %s is %s: %w", run, note.State, err)
	}
	return nil
}
