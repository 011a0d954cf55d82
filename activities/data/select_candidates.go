package data

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// SelectCandidates decides which training tasks a given model answers, where the recipe filters tasks by difficulty:
// all that pass the other filters. It commits a row for each task, and the model if that is a folder, so that any
// worker can have it answer.
type SelectCandidates struct{ *stage.Worker }

// mostAnswerShards bounds the activities in the history of a run, which has six events for each.
const mostAnswerShards = 1000

// Execute refuses a recipe whose other filters drop every task.
func (a SelectCandidates) Execute(ctx context.Context, e *stage.Env, in api.Scope) (out api.Candidates, err error) {
	s := stage.Spec{Scope: in, Stage: schema.StageCandidates, Turn: -1, Shard: -1}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		world, list, err := a.Recipes.Lister(w.Recipe)
		if err != nil {
			return err
		}
		tasks, err := list.Tasks(ctx, env.Train)
		if err != nil {
			return err
		}
		w.Manifest.Note = map[string]string{}
		filters, err := PrepareData(a).filters(ctx, w, in, list)
		if err != nil {
			return err
		}
		kept := api.DataPrepared{}
		rows := taskRows(tasks, filters.Apply(tasks), &kept)
		if kept.Kept == 0 {
			return curation.DropsAll(len(tasks), world.Name(), kept.Dropped)
		}
		if out.Model, err = a.answerer(ctx, w, in); err != nil {
			return err
		}
		out.Tasks = kept.Kept
		out.Shards = answerShards(kept.Kept, w.Recipe.Data.Difficulty.ShardTasks)
		w.Timing.Rows = int64(len(rows))
		return stage.Put(ctx, w, rows)
	})
	if out.Model.Manifest == (schema.Ref{}) {
		out.Model.Manifest = out.Manifest
	}
	return out, err
}

// answerShards is how many activities answer the tasks.
func answerShards(tasks, each int) int { return min((tasks+each-1)/each, mostAnswerShards) }

// shardOf returns the places of a shard: consecutive, and as many in each shard as can be.
func shardOf(places []int, shard, shards int) []int {
	return places[shard*len(places)/shards : (shard+1)*len(places)/shards]
}
