package stage

import (
	"context"
	"log/slog"
	"strings"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// NoteCode notes which code the stage has called. Files that were edited since the run was prepared are a warning.
func (w *Draft) NoteCode(ctx context.Context, scope api.Scope, note, files string) error {
	if files == "" {
		return nil
	}
	if w.Manifest.Note == nil {
		w.Manifest.Note = map[string]string{}
	}
	w.Manifest.Note[note] = files
	c, err := w.Worker.Recipes.Config(ctx, scope.Config)
	if err != nil {
		return err
	}
	if w.Edited = strings.Join(remote.Edited(c.Code[note], files), ", "); w.Edited != "" {
		slog.WarnContext(ctx, "Python code was edited since the run began", "note", note, "files", w.Edited)
	}
	return nil
}
