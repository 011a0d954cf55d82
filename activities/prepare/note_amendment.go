package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

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
	d := schema.NewDeed(schema.DeedAmend, string(detail), in.Actor, stage.Hostname(), time.UnixMicro(in.At))
	d.Manifest = committed.Key
	err = a.NoteDeed(ctx, in.Run, d, fmt.Sprintf("%s-%d", schema.DeedAmend, in.Number))
	if errors.Is(err, store.ErrCredentials) {
		slog.WarnContext(ctx, "the record does not say who asked for a change", "error", err)
		return nil
	}
	return err
}
