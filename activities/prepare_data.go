package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// PrepareData decides which training tasks the run draws, by the recipe's data section, and commits a row for each
// task. Later stages read the rows and not the evaluation sets or the other run, which may have changed since.
type PrepareData struct{ *Deps }

// mostGrams bounds the n-grams of the evaluation sets: about 1.5 GB of memory.
const mostGrams = 20_000_000

// Execute refuses a recipe whose filters drop every task.
func (a PrepareData) Execute(ctx context.Context, in api.DataInput) (api.DataPrepared, error) {
	out := api.DataPrepared{}
	s := spec{scope: in.Scope, stage: api.StageData, turn: -1, shard: -1}
	if in.Candidates != (schema.Ref{}) {
		s.inputs = []schema.Ref{in.Candidates, in.Answers}
	}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		if in.Candidates != (schema.Ref{}) {
			return a.byDifficulty(ctx, w, in, recipe, &out)
		}
		world, list, err := a.lister(recipe)
		if err != nil {
			return err
		}
		tasks, err := list.Tasks(ctx, env.Train)
		if err != nil {
			return err
		}
		w.manifest.Note = map[string]string{}
		filters, err := a.filters(ctx, w, in.Scope, recipe, list)
		if err != nil {
			return err
		}
		rows := taskRows(tasks, filters.Apply(tasks), &out)
		if out.Kept == 0 {
			return dropsAll(len(tasks), world, out)
		}
		w.timing.Rows = int64(len(rows))
		return put(ctx, w, rows)
	})
	return out, err
}

// dropsAll is the error of filters that keep no task.
func dropsAll(tasks int, world env.Environment, out api.DataPrepared) error {
	var why []string
	for _, filter := range slices.Sorted(maps.Keys(out.Dropped)) {
		why = append(why, fmt.Sprintf("%s %d", filter, out.Dropped[filter]))
	}
	return refuse(api.FailBadInput, "the filters drop all of the %d training tasks of %s: %s", tasks, world.Name(),
		strings.Join(why, ", "))
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

// filters reads what the filters compare tasks with.
func (a PrepareData) filters(ctx context.Context, w *draft, in api.Scope, recipe *recipes.Recipe,
	list env.Lister) (f curation.Filters, err error) {
	d := recipe.Data
	f = curation.Filters{IntegerAnswers: d.IntegerAnswers, Deduplicate: d.Deduplicate}
	if d.Decontaminate != nil {
		if f.Evaluation, err = evaluationGrams(ctx, w, *d.Decontaminate, list); err != nil {
			return f, err
		}
	}
	if d.Hard != nil {
		f.MinSamples, f.Below = d.Hard.Samples, d.Hard.Below
		f.Outcomes, err = a.outcomesOfRun(ctx, w, in, d.Hard.Run)
	}
	return f, err
}

// evaluationGrams reads the n-grams of the held-out tasks and of the other evaluation sets.
func evaluationGrams(ctx context.Context, w *draft, d recipes.Decontaminate, list env.Lister) (*curation.Grams, error) {
	grams := curation.NewGrams(d.NGram, mostGrams)
	add := func(set string, tasks []env.Task) error {
		for _, t := range tasks {
			if err := grams.Add(set, t.Text); err != nil {
				return err
			}
		}
		return nil
	}
	tasks, err := list.Tasks(ctx, env.HeldOut)
	if err == nil {
		err = add("the held-out tasks", tasks)
	}
	if err != nil {
		return nil, err
	}
	for i, path := range d.Against {
		tasks, digest, err := list.TasksAt(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("data.decontaminate.against: %w", err)
		}
		if err := add(path, tasks); err != nil {
			return nil, err
		}
		w.manifest.Note[fmt.Sprintf("against_%d_sha256", i)] = digest
		w.progress.set(i+1, len(d.Against))
	}
	return grams, nil
}

// outcomesOfRun counts the samples of all finished steps of another run.
func (a PrepareData) outcomesOfRun(ctx context.Context, w *draft, in api.Scope, run string) (prompts.Outcomes, error) {
	if run == in.Run {
		return nil, refuse(api.FailBadInput, "data.hard.run: %s is this run", run)
	}
	all := prompts.Outcomes{}
	for step := 1; ; step++ {
		_, _, found, err := a.Record.Head(ctx, run, strconv.Itoa(step))
		if err != nil {
			return nil, err
		}
		if !found && step == 1 {
			return nil, refuse(api.FailBadInput, "data.hard.run: run %s has finished no step in %s", run, a.Store)
		}
		if !found {
			w.manifest.Note["hard_run"], w.manifest.Note["hard_steps"] = run, strconv.Itoa(step-1)
			return all, nil
		}
		of, err := a.stepOutcomes(ctx, api.Scope{Run: run, Step: step + 1}, step)
		if err != nil {
			return nil, err
		}
		all.Add(of.of)
		w.manifest.Inputs = append(w.manifest.Inputs, of.inputs...)
		w.progress.set(step, step)
	}
}

// taskRows are the rows of the verdicts. It counts them in out.
func taskRows(tasks []env.Task, verdicts []curation.Verdict, out *api.DataPrepared) []schema.TaskRow {
	rows := make([]schema.TaskRow, len(tasks))
	for i, t := range tasks {
		v := verdicts[i]
		rows[i] = schema.TaskRow{Place: int32(i), TaskID: t.ID, Level: int32(t.Level), Kept: v.Reason == "",
			Reason: v.Reason}
		if v.Samples > 0 {
			rows[i].Samples, rows[i].Correct = new(int32(v.Samples)), new(int32(v.Correct))
		}
		if !rows[i].Kept {
			rows[i].Detail = new(v.Detail)
		}
		countTask(out, rows[i].Kept, v.Reason)
	}
	return rows
}

// countTask counts one task.
func countTask(out *api.DataPrepared, kept bool, reason string) {
	if kept {
		out.Kept++
		return
	}
	if out.Dropped == nil {
		out.Dropped = map[string]int{}
	}
	out.Dropped[reason]++
}
