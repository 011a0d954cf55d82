package data

import (
	"context"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// SelectPrompts takes the step's problems from the training stream. The stream is a function of seed, step and index,
// so the manifest records only the range of indexes: the commit consumes a prompt exactly once, whatever is
// restarted. Each round of dynamic sampling is a part of the stage and continues the group numbers of the round
// before. If the schedule asks for unsolved problems, the record of the earlier steps says which problems to skip.
type SelectPrompts struct {
	*stage.Worker
	// ledgers count, for each run, how the samples of its finished steps fared on each problem.
	ledgers *resolver.Recent[string, *ledger]
}

// NewSelectPrompts makes the stage of one worker.
func NewSelectPrompts(d *stage.Worker) SelectPrompts {
	return SelectPrompts{d, &resolver.Recent[string, *ledger]{Most: ledgersKept}}
}

// Execute commits one row for each group, none of them a held-out problem, in files of whole shards.
func (a SelectPrompts) Execute(ctx context.Context, e *stage.Env, in api.PromptsInput) (out api.Done, err error) {
	s, round := stage.Spec{Scope: in.Scope, Stage: schema.StagePrompts, Turn: -1, Shard: -1}, 0
	if in.Round != nil {
		round = *in.Round
		s.Shard = round
	}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		world, err := keptWorld(ctx, w, in.Run)
		if err != nil {
			return err
		}
		loop, err := a.Recipes.Loop(w.Recipe, resolver.RolloutSampling(w.Recipe))
		if err != nil {
			return err
		}
		solved, err := a.SolvedProblems(ctx, w, in.Scope, w.Recipe.Schedule.Unsolved(in.Step))
		if err != nil {
			return err
		}
		drawn, err := prompts.Draw(ctx, world, w.Recipe, in.Step, round, solved)
		if err != nil {
			return err
		}
		rows := make([]schema.PromptRow, len(drawn.Tasks))
		for i, task := range drawn.Tasks {
			if rows[i], err = loop.PromptRow(ctx, in.Step, round*len(rows)+i, task); err != nil {
				return err
			}
		}
		w.Timing.Rows = int64(len(rows))
		w.Manifest.Note = map[string]string{"ledger_from": strconv.Itoa(drawn.First),
			"ledger_to": strconv.Itoa(drawn.First + len(rows))}
		if drawn.Skipped > 0 {
			w.Manifest.Note["passed_over"] = strconv.Itoa(drawn.Skipped)
		}
		for file := range slices.Chunk(rows, prompts.PerFile(w.Recipe.Rollout.ShardGroups)) {
			if err := stage.Put(ctx, w, file); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// keptWorld returns the recipe's environment with the training tasks that the run draws. The manifest that decided on
// them becomes an input of the draft.
func keptWorld(ctx context.Context, w *stage.Draft, run string) (env.Environment, error) {
	world, err := w.Worker.Recipes.World(w.Recipe)
	if err != nil {
		return nil, err
	}
	data, err := w.Worker.Recipes.KeptTasks(ctx, run, w.Recipe)
	if err != nil || data == nil {
		return world, err
	}
	w.Manifest.Inputs = append(w.Manifest.Inputs, data.Ref)
	return curation.NewWorld(world, data.Kept), nil
}
