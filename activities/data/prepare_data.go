package data

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// PrepareData decides which training tasks the run draws, by the recipe's data section, and commits a row for each
// task. Later stages read the rows and not the evaluation sets or the other run, which may have changed since.
type PrepareData struct{ *stage.Worker }

// Execute refuses a recipe whose filters drop every task.
func (a PrepareData) Execute(ctx context.Context, e *stage.Env, in api.DataInput) (out api.DataPrepared, err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageData, Turn: -1, Shard: -1}
	if in.Candidates != (schema.Ref{}) {
		s.Inputs = []schema.Ref{in.Candidates, in.Answers}
	}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		if in.Candidates != (schema.Ref{}) {
			return a.byDifficulty(ctx, w, in, &out)
		}
		world, list, err := a.Recipes.Lister(w.Recipe)
		if err != nil {
			return err
		}
		tasks, err := list.Tasks(ctx, env.Train)
		if err != nil {
			return err
		}
		w.Manifest.Note = map[string]string{}
		filters, err := a.filters(ctx, w, in.Scope, list)
		if err != nil {
			return err
		}
		rows := taskRows(tasks, filters.Apply(tasks), &out)
		if out.Kept == 0 {
			return curation.DropsAll(len(tasks), world.Name(), out.Dropped)
		}
		w.Timing.Rows = int64(len(rows))
		return stage.Put(ctx, w, rows)
	})
	return out, err
}

// filters reads what the filters compare tasks with.
func (a PrepareData) filters(ctx context.Context, w *stage.Draft, in api.Scope, list env.Lister) (f curation.Filters,
	err error) {
	d := *w.Recipe.Data
	f, err = curation.FiltersOf(ctx, d, list, func(i int, digest string) {
		w.Manifest.Note[fmt.Sprintf("against_%d_sha256", i)] = digest
		w.Progress.Set(i+1, len(d.Decontaminate.Against))
	})
	if err == nil && d.Hard != nil {
		f.MinSamples, f.Below = d.Hard.Samples, d.Hard.Below
		f.Outcomes, err = a.outcomesOfRun(ctx, w, in, d.Hard.Run)
	}
	return f, err
}

// outcomesOfRun counts the samples of all finished steps of another run.
func (a PrepareData) outcomesOfRun(ctx context.Context, w *stage.Draft, in api.Scope, run string) (prompts.Outcomes,
	error) {
	if run == in.Run {
		return nil, badinput.Errorf("data.hard.run: %s is this run", run)
	}
	all := prompts.Outcomes{}
	for step := 1; ; step++ {
		_, _, found, err := a.Record.Head(ctx, run, strconv.Itoa(step))
		if err != nil {
			return nil, err
		}
		if !found && step == 1 {
			return nil, badinput.Errorf("data.hard.run: run %s has finished no step in %s", run, a.Store)
		}
		if !found {
			w.Manifest.Note["hard_run"], w.Manifest.Note["hard_steps"] = run, strconv.Itoa(step-1)
			return all, nil
		}
		of, err := readOutcomes(ctx, a.Worker.Records, api.Scope{Run: run, Step: step + 1}, step)
		if err != nil {
			return nil, err
		}
		all.Add(of.of)
		w.Manifest.Inputs = append(w.Manifest.Inputs, of.inputs...)
		w.Progress.Set(step, step)
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
