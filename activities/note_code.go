package activities

import (
	"context"
	"log/slog"
	"strings"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// noteCode notes which code the stage has called. Files that were edited since the run was prepared are a warning.
func (w *draft) noteCode(ctx context.Context, scope api.Scope, note, files string) error {
	if files == "" {
		return nil
	}
	if w.manifest.Note == nil {
		w.manifest.Note = map[string]string{}
	}
	w.manifest.Note[note] = files
	c, err := w.deps.Recipes.config(ctx, scope.Config)
	if err != nil {
		return err
	}
	if w.edited = strings.Join(remote.Edited(c.code[note], files), ", "); w.edited != "" {
		slog.WarnContext(ctx, "Python code was edited since the run began", "note", note, "files", w.edited)
	}
	return nil
}
