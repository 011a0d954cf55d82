package activities

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// The user's own Python is loaded when a run is prepared, so that code which does not load is refused then and the
// record says what the run began with. Each stage that calls it notes what it called. The digest is not put into the
// recipe, so that a fault may be mended in the file before a stage is tried again.

// codeOf loads the Python that a recipe names, and returns the notes about it.
func (d *Deps) codeOf(ctx context.Context, r *recipes.Recipe) (map[string]string, error) {
	notes := map[string]string{}
	if f, ok := r.Function(); ok && f.Module != "" {
		files, err := d.functions.Code(ctx, recipes.FunctionSettings(f))
		if err != nil {
			return nil, err
		}
		notes[schema.NoteRewardCode] = files
	}
	files, err := d.worldCode(ctx, r)
	if files != "" {
		notes[schema.NoteEnvironmentCode] = files
	}
	return notes, err
}

// worldCode is the listing of the Python that a recipe's environment runs; "" if it runs none.
func (d *Deps) worldCode(ctx context.Context, r *recipes.Recipe) (string, error) {
	python := func(p recipes.Part) bool { return p.Name == remote.Python.Name }
	if r.Environment.Name != remote.Python.Name && !slices.ContainsFunc(r.Environment.Parts, python) {
		return "", nil
	}
	world, err := d.world(r)
	if err != nil {
		return "", err
	}
	coded, ok := world.(env.Coded)
	if !ok {
		return "", nil
	}
	return coded.Code(ctx)
}

// noteCode notes what a recipe loads. Code that does not load is the user's to mend.
func (a PrepareRun) noteCode(ctx context.Context, r *recipes.Recipe, m *schema.Manifest) error {
	notes, err := a.codeOf(ctx, r)
	if own := (remote.CodeError{}); errors.As(err, &own) {
		return badinput.Of(err)
	}
	maps.Copy(m.Note, notes)
	return err
}

// codeNotes are the notes about the user's Python in the manifest of a recipe.
func codeNotes(m schema.Manifest) map[string]string {
	notes := map[string]string{}
	for _, name := range []string{schema.NoteRewardCode, schema.NoteEnvironmentCode} {
		if files, ok := m.Note[name]; ok {
			notes[name] = files
		}
	}
	return notes
}

// noteCode notes which code the stage has called. Files that were edited since the run was prepared are a warning.
func (w *draft) noteCode(ctx context.Context, scope api.Scope, note, files string) error {
	if files == "" {
		return nil
	}
	if w.manifest.Note == nil {
		w.manifest.Note = map[string]string{}
	}
	w.manifest.Note[note] = files
	c, err := w.deps.config(ctx, scope.Config)
	if err != nil {
		return err
	}
	if w.edited = strings.Join(remote.Edited(c.code[note], files), ", "); w.edited != "" {
		slog.WarnContext(ctx, "Python code was edited since the run began", "note", note, "files", w.edited)
	}
	return nil
}
