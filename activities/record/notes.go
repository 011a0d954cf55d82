package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// NoteDeed writes a note. id and the note's time tell it from all others of the run.
func (r Records) NoteDeed(ctx context.Context, run string, deed schema.Deed, id string) error {
	text, err := schema.Canonical(deed)
	if err != nil {
		return err
	}
	err = r.Store.PutIfAbsent(ctx, schema.DeedKey(run, deed, id), text)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note who asks for %s of run %s: %w", deed.Action, run, err)
	}
	return nil
}

// NoteState notes how a run is. A note that is there stays.
func (r Records) NoteState(ctx context.Context, run string, note schema.StateNote) error {
	text, err := schema.Canonical(note)
	if err != nil {
		return err
	}
	err = r.Store.PutIfAbsent(ctx, schema.StateKey(run, note), text)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note that run %s is %s: %w", run, note.State, err)
	}
	return nil
}
