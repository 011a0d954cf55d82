package upkeep

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/activities/failure"
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

// NoteDeed notes in the record who has something done to a run, where no command does: schedules start runs.
type NoteDeed struct{ *stage.Worker }

// Execute writes the note. Every attempt writes it under the same key, so that one is left.
func (a NoteDeed) Execute(ctx context.Context, e *stage.Env, in api.DeedInput) (api.Done, error) {
	detail, err := json.Marshal(in.With)
	if err != nil {
		return api.Done{}, err
	}
	switch in.Action {
	case schema.DeedConfirm, schema.DeedRetry, schema.DeedReplay, schema.DeedDelete: // anyone can start a workflow
		return api.Done{}, failure.Permanent(api.FailRefused, fmt.Errorf("only commands %s runs", in.Action))
	}
	d := schema.NewDeed(in.Action, string(detail), in.Actor, stage.Hostname(), time.UnixMicro(in.At))
	return api.Done{}, failure.Classify(a.NoteDeed(ctx, in.Run, d, in.Action))
}
