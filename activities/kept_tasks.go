package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// prepared is what the data stage of a run has committed.
type prepared struct {
	kept   []env.Task
	digest string     // of the rows
	ref    schema.Ref // of the manifest
}

// preparedData reads which tasks the data stage of the run keeps. It is nil for a recipe without a data section.
func (d *Deps) preparedData(ctx context.Context, run string, recipe *recipes.Recipe) (*prepared, error) {
	if recipe.Data == nil {
		return nil, nil
	}
	m, ref, found, err := d.Record.Lookup(ctx, schema.AtInit(run, schema.StageData))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refuse(api.FailCorrupt, "data: run %s has committed no tasks", run)
	}
	out := &prepared{ref: ref}
	if out, ok := d.prepared.find(ref.Digest); ok {
		return out, nil
	}
	tasks, rows, err := d.taskRowsBehind(ctx, recipe, run, ref)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Kept {
			out.kept = append(out.kept, tasks[r.Place])
		}
	}
	if len(out.kept) == 0 {
		return nil, refuse(api.FailCorrupt, "data: %s keeps no task", ref.Key)
	}
	for _, s := range m.ShardsOf(schema.Tasks) {
		out.digest = s.Digest
	}
	d.prepared.put(ref.Digest, out)
	return out, nil
}

// preparedKept bounds the runs whose kept tasks a worker remembers.
const preparedKept = 4

// keptWorld returns the recipe's environment with the training tasks that the run draws. The manifest that decided on
// them becomes an input of the draft.
func (d *Deps) keptWorld(ctx context.Context, w *draft, run string, recipe *recipes.Recipe) (env.Environment, error) {
	world, err := d.world(recipe)
	if err != nil {
		return nil, err
	}
	data, err := d.preparedData(ctx, run, recipe)
	if err != nil || data == nil {
		return world, err
	}
	w.manifest.Inputs = append(w.manifest.Inputs, data.ref)
	return curation.NewWorld(world, data.kept), nil
}
