package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// NoteDeed notes in the record who has something done to a run, where no command does: schedules start runs.
type NoteDeed struct{ *Deps }

// Execute writes the note. Every attempt writes it under the same key, so that one is left.
func (a NoteDeed) Execute(ctx context.Context, e *Env, in api.DeedInput) (api.Done, error) {
	detail, err := json.Marshal(in.With)
	if err != nil {
		return api.Done{}, err
	}
	switch in.Action {
	case schema.DeedConfirm, schema.DeedRetry, schema.DeedReplay, schema.DeedDelete: // anyone can start a workflow
		return api.Done{}, permanent(api.FailRefused, fmt.Errorf("only commands %s runs", in.Action))
	}
	d := schema.NewDeed(in.Action, string(detail), in.Actor, hostname(), time.UnixMicro(in.At))
	return api.Done{}, classify(a.noteDeed(ctx, in.Run, d, in.Action))
}

// noteDeed writes a note. id and the note's time tell it from all others of the run.
func (d *Deps) noteDeed(ctx context.Context, run string, deed schema.Deed, id string) error {
	text, err := schema.Canonical(deed)
	if err != nil {
		return err
	}
	err = d.Store.PutIfAbsent(ctx, schema.DeedKey(run, deed, id), text)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note who asks for %s of run %s: %w", deed.Action, run, err)
	}
	return nil
}

// noteAmendment notes who asked for a committed amendment. Its manifest does not say it: later stages name it by its
// digest, and an equal change must give equal bytes. A store that lets this worker note nothing does
// not stop the run, for the command has noted the request itself.
func (a AmendRecipe) noteAmendment(ctx context.Context, in api.AmendInput, committed schema.Ref) error {
	if in.Actor == "" {
		return nil
	}
	detail, err := json.Marshal(map[string]any{"amendment": in.Number, "from_step": in.From, "set": in.Set})
	if err != nil {
		return err
	}
	d := schema.NewDeed(schema.DeedAmend, string(detail), in.Actor, hostname(), time.UnixMicro(in.At))
	d.Manifest = committed.Key
	err = a.noteDeed(ctx, in.Run, d, fmt.Sprintf("%s-%d", schema.DeedAmend, in.Number))
	if errors.Is(err, store.ErrCredentials) {
		slog.WarnContext(ctx, "the record does not say who asked for a change", "error", err)
		return nil
	}
	return err
}
