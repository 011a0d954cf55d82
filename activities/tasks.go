package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// heldOutTasks counts the held-out tasks that an evaluation takes.
func (r *resolver) heldOutTasks(ctx context.Context, recipe *recipes.Recipe) (int, error) {
	world, err := r.world(recipe)
	if err != nil {
		return 0, err
	}
	tasks, err := prompts.HeldOut(ctx, world, recipe)
	return len(tasks), err
}

// lister returns the recipe's environment, which can list its tasks.
func (r *resolver) lister(recipe *recipes.Recipe) (env.Environment, env.Lister, error) {
	world, err := r.world(recipe)
	if err != nil {
		return nil, nil, err
	}
	list, ok := world.(env.Lister)
	if !ok {
		return nil, nil, refuse(api.FailBadInput, "data: environment %s cannot list its tasks", world.Name())
	}
	return world, list, nil
}

// prepared is what the data stage of a run has committed.
type prepared struct {
	kept   []env.Task
	digest string     // of the rows
	ref    schema.Ref // of the manifest
}

// preparedData reads which tasks the data stage of the run keeps. It is nil for a recipe without a data section.
func (r *resolver) preparedData(ctx context.Context, run string, recipe *recipes.Recipe) (*prepared, error) {
	if recipe.Data == nil {
		return nil, nil
	}
	m, ref, found, err := r.records.Record.Lookup(ctx, schema.AtInit(run, schema.StageData))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refuse(api.FailCorrupt, "data: run %s has committed no tasks", run)
	}
	out := &prepared{ref: ref}
	if out, ok := r.prepared.find(ref.Digest); ok {
		return out, nil
	}
	tasks, rows, err := r.taskRowsBehind(ctx, recipe, run, ref)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Kept {
			out.kept = append(out.kept, tasks[row.Place])
		}
	}
	if len(out.kept) == 0 {
		return nil, refuse(api.FailCorrupt, "data: %s keeps no task", ref.Key)
	}
	for _, s := range m.ShardsOf(schema.Tasks) {
		out.digest = s.Digest
	}
	r.prepared.put(ref.Digest, out)
	return out, nil
}

// preparedKept bounds the runs whose kept tasks a worker remembers.
const preparedKept = 4

// taskRowsBehind returns the environment's training tasks and the rows that a manifest commits about them. It refuses
// files that have changed since.
func (r *resolver) taskRowsBehind(ctx context.Context, recipe *recipes.Recipe, run string, ref schema.Ref) ([]env.Task,
	[]schema.TaskRow, error) {
	rows, err := read[schema.TaskRow](ctx, r.records, ref)
	if err != nil {
		return nil, nil, err
	}
	_, list, err := r.lister(recipe)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := list.Tasks(ctx, env.Train)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		if int(row.Place) >= len(tasks) || tasks[row.Place].ID != row.TaskID {
			return nil, nil, refuse(api.FailBadInput, "data: task %d of the environment's files is not task %s, which "+
				"run %s has committed: the files have changed", row.Place, row.TaskID, run)
		}
	}
	return tasks, rows, nil
}
