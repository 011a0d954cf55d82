package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// The Temporal of a local stack asks no one who he is, and so every user of the machine can start workflows. Its store
// asks for keys that its user alone can read. So a worker of a local stack starts programs only for recipes that
// someone with these keys has asked for: the command that starts the run leaves a request there, and those that create
// a schedule or confirm a run leave a note. Secrets are as programs: a recipe could send them anywhere.

// confirmed refuses a new run whose recipe names programs or secrets, unless a command has asked for it.
func confirmed(ctx context.Context, d *stage.Worker, run string, r *recipes.Resolved) error {
	programs := r.Recipe.Privileged()
	if !d.Execution.Confirms || len(programs) == 0 {
		return nil
	}
	var request schema.Request
	switch found, err := document(ctx, d, schema.RequestKey(run), &request); {
	case err != nil:
		return err
	case found && request.Digest == r.Digest:
		return nil
	}
	for _, of := range []string{run, schema.NoRun} {
		notes, err := d.Store.List(ctx, schema.DeedsPrefix+of+"/")
		if err != nil {
			return fmt.Errorf("look up who confirmed run %s: %w", run, err)
		}
		for _, n := range slices.Backward(notes) {
			var deed schema.Deed
			if _, err := document(ctx, d, n.Key, &deed); err != nil {
				return err
			}
			if deed.Action == schema.DeedConfirm && deed.Detail == strconv.Quote(r.Digest) {
				return nil
			}
		}
	}
	return failure.Permanent(api.FailUnconfirmed, fmt.Errorf("no command of yours has started the run, and its recipe "+
		"wants programs or secrets of yours: %s; `ropewalk unpark %s --confirm` lets it have them",
		strings.Join(programs, "; "), run))
}

// document reads a JSON document of the store.
func document(ctx context.Context, d *stage.Worker, key string, into any) (found bool, err error) {
	text, err := d.Store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", key, err)
	}
	return true, nil
}

// samePrivileges refuses a change of the programs and secrets that a run uses, unless a command has noted that it asks
// for it: an update itself can come from anyone.
func samePrivileges(ctx context.Context, d *stage.Worker, in api.AmendInput, before, after *recipes.Recipe) error {
	if !d.Execution.Confirms || slices.Equal(before.Privileged(), after.Privileged()) {
		return nil
	}
	if asked, err := Commanded(ctx, d, in.Run, schema.DeedRetry, in.Set); asked || err != nil {
		return outage(err)
	}
	return badinput.Errorf("the programs and secrets of a run cannot be changed (%s): start another "+
		"run", strings.Join(after.Privileged(), "; "))
}

// Commanded reports whether a command has noted that it asks for an action on a run with these changes of the recipe.
func Commanded(ctx context.Context, d *stage.Worker, run, action string, set []string) (bool, error) {
	notes, err := d.Store.List(ctx, schema.DeedsPrefix+run+"/")
	if err != nil {
		return false, fmt.Errorf("look up who changed run %s: %w", run, err)
	}
	for _, n := range slices.Backward(notes) {
		var deed schema.Deed
		if _, err := document(ctx, d, n.Key, &deed); err != nil {
			return false, err
		}
		var asked struct {
			Set []string `json:"set"`
		}
		if deed.Action == action && json.Unmarshal([]byte(deed.Detail), &asked) == nil &&
			slices.Equal(asked.Set, set) {
			return true, nil
		}
	}
	return false, nil
}

// The user's own Python is loaded when a run is prepared, so that code which does not load is refused then and the
// record says what the run began with. Each stage that calls it notes what it called. The digest is not put into the
// recipe, so that a fault may be mended in the file before a stage is tried again.

// codeOf loads the Python that a recipe names, and returns the notes about it.
func codeOf(ctx context.Context, d *stage.Worker, r *recipes.Recipe) (map[string]string, error) {
	notes := map[string]string{}
	if f, ok := r.Function(); ok && f.Module != "" {
		files, err := d.Execution.Functions.Code(ctx, f)
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
