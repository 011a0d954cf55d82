package resolver

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// HeldOutTasks counts the held-out tasks that an evaluation takes.
func (r *Recipes) HeldOutTasks(ctx context.Context, recipe *recipes.Recipe) (int, error) {
	world, err := r.World(recipe)
	if err != nil {
		return 0, err
	}
	tasks, err := prompts.HeldOut(ctx, world, recipe)
	return len(tasks), err
}

// Lister returns the recipe's environment, which can list its tasks.
func (r *Recipes) Lister(recipe *recipes.Recipe) (env.Environment, env.Lister, error) {
	world, err := r.World(recipe)
	if err != nil {
		return nil, nil, err
	}
	list, ok := world.(env.Lister)
	if !ok {
		return nil, nil, badinput.Errorf("data: environment %s cannot list its tasks", world.Name())
	}
	return world, list, nil
}

// Tasks is what the data stage of a run has committed.
type Tasks struct {
	Kept   []env.Task
	Digest string     // of the rows
	Ref    schema.Ref // of the manifest
}

// KeptTasks reads which tasks the data stage of the run keeps. It is nil for a recipe without a data section.
func (r *Recipes) KeptTasks(ctx context.Context, run string, recipe *recipes.Recipe) (*Tasks, error) {
	if recipe.Data == nil {
		return nil, nil
	}
	m, ref, found, err := r.Records.Record.Lookup(ctx, schema.AtInit(run, schema.StageData))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refusal.Corruptf("data: run %s has committed no tasks", run)
	}
	out := &Tasks{Ref: ref}
	if out, ok := r.prepared.find(ref.Digest); ok {
		return out, nil
	}
	tasks, rows, err := r.TaskRows(ctx, recipe, run, ref)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Kept {
			out.Kept = append(out.Kept, tasks[row.Place])
		}
	}
	if len(out.Kept) == 0 {
		return nil, refusal.Corruptf("data: %s keeps no task", ref.Key)
	}
	for _, s := range m.ShardsOf(schema.Tasks) {
		out.Digest = s.Digest
	}
	r.prepared.put(ref.Digest, out)
	return out, nil
}

// preparedKept bounds the runs whose kept tasks a worker remembers.
const preparedKept = 4

// TaskRows returns the environment's training tasks and the rows that a manifest commits about them. It refuses
// files that have changed since.
func (r *Recipes) TaskRows(ctx context.Context, recipe *recipes.Recipe, run string, ref schema.Ref) ([]env.Task,
	[]schema.TaskRow, error) {
	rows, err := record.Read[schema.TaskRow](ctx, r.Records, ref)
	if err != nil {
		return nil, nil, err
	}
	_, list, err := r.Lister(recipe)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := list.Tasks(ctx, env.Train)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		if int(row.Place) >= len(tasks) || tasks[row.Place].ID != row.TaskID {
			return nil, nil, badinput.Errorf("data: task %d of the environment's files is not task "+
				"%s, which run %s has committed: the files have changed", row.Place, row.TaskID, run)
		}
	}
	return tasks, rows, nil
}

// WorldCode is the listing of the Python that a recipe's environment runs; "" if it runs none.
func (r *Recipes) WorldCode(ctx context.Context, recipe *recipes.Recipe) (string, error) {
	if len(recipe.Environment.Programs()) == 0 {
		return "", nil
	}
	world, err := r.World(recipe)
	if err != nil {
		return "", err
	}
	coded, ok := world.(env.Coded)
	if !ok {
		return "", nil
	}
	return coded.Code(ctx)
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
