package prepare

import (
	"context"
	"errors"
	"maps"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// The user's own Python is loaded when a run is prepared, so that code which does not load is refused then and the
// record says what the run began with. Each stage that calls it notes what it called. The digest is not put into the
// recipe, so that a fault may be mended in the file before a stage is tried again.

// codeOf loads the Python that a recipe names, and returns the notes about it.
func codeOf(ctx context.Context, d *stage.Worker, r *recipes.Recipe) (map[string]string, error) {
	notes := map[string]string{}
	if f, ok := r.Function(); ok && f.Module != "" {
		files, err := d.Execution.Functions.Code(ctx, recipes.FunctionSettings(f))
		if err != nil {
			return nil, err
		}
		notes[schema.NoteRewardCode] = files
	}
	files, err := d.Recipes.WorldCode(ctx, r)
	if files != "" {
		notes[schema.NoteEnvironmentCode] = files
	}
	return notes, err
}

// noteCode notes what a recipe loads. Code that does not load is the user's to mend.
func (a PrepareRun) noteCode(ctx context.Context, r *recipes.Recipe, m *schema.Manifest) error {
	notes, err := codeOf(ctx, a.Worker, r)
	if own := (remote.CodeError{}); errors.As(err, &own) {
		return badinput.Of(err)
	}
	maps.Copy(m.Note, notes)
	return err
}
