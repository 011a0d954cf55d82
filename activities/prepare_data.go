package activities

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// PrepareData decides which training tasks the run draws, by the recipe's data section, and commits a row for each
// task. Later stages read the rows and not the evaluation sets or the other run, which may have changed since.
type PrepareData struct{ *Deps }

// Execute refuses a recipe whose filters drop every task.
func (a PrepareData) Execute(ctx context.Context, e *Env, in api.DataInput) (api.DataPrepared, error) {
	out := api.DataPrepared{}
	s := spec{scope: in.Scope, stage: schema.StageData, turn: -1, shard: -1}
	if in.Candidates != (schema.Ref{}) {
		s.inputs = []schema.Ref{in.Candidates, in.Answers}
	}
	err := execute(ctx, a.Deps, e, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.Recipes.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		if in.Candidates != (schema.Ref{}) {
			return a.byDifficulty(ctx, w, in, recipe, &out)
		}
		world, list, err := a.Recipes.lister(recipe)
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
			return curation.DropsAll(len(tasks), world.Name(), out.Dropped)
		}
		w.timing.Rows = int64(len(rows))
		return put(ctx, w, rows)
	})
	return out, err
}

// filters reads what the filters compare tasks with.
func (a PrepareData) filters(ctx context.Context, w *draft, in api.Scope, recipe *recipes.Recipe,
	list env.Lister) (f curation.Filters, err error) {
	d := *recipe.Data
	f, err = curation.FiltersOf(ctx, d, list, func(i int, digest string) {
		w.manifest.Note[fmt.Sprintf("against_%d_sha256", i)] = digest
		w.progress.set(i+1, len(d.Decontaminate.Against))
	})
	if err == nil && d.Hard != nil {
		f.MinSamples, f.Below = d.Hard.Samples, d.Hard.Below
		f.Outcomes, err = a.outcomesOfRun(ctx, w, in, d.Hard.Run)
	}
	return f, err
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
