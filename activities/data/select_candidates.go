package data

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
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

// answerer finds the model that answers the training tasks, and notes it in the draft. The manifest of the reference is
// zero if the draft's own manifest commits the model, because the model is a folder.
func (a SelectCandidates) answerer(ctx context.Context, w *stage.Draft, in api.Scope) (out api.PolicyRef, err error) {
	d, model := w.Recipe.Data.Difficulty, schema.Checkpoint{}
	run, step, err := d.Answerer()
	switch {
	case err != nil:
		return out, badinput.Errorf("data.difficulty: %v", err)
	case run == in.Run:
		return out, badinput.Errorf("data.difficulty.model: %s is this run", run)
	case run != "":
		model, out, err = a.policyOf(ctx, run, step)
	default:
		model, err = enginepool.StoreFolder(ctx, a.Record, d.Folder(), a.Engines.Scratch, w.Place)
		if err != nil && ctx.Err() == nil {
			err = badinput.Errorf("data.difficulty.model: %s: %v", d.Folder(), err)
		}
		w.Manifest.Checkpoint, out.Digest = &model, model.Digest
	}
	if err != nil {
		return out, err
	}
	if d.Weights != "" && d.Weights != model.Weights {
		return out, badinput.Errorf("data.difficulty.weights: the weights digest of %s is %s", d.Model, model.Weights)
	}
	if err := a.readsTokens(w.Recipe, model); err != nil {
		return out, err
	}
	w.Manifest.Note["model"], w.Manifest.Note["model_checkpoint"] = d.Model, model.Digest
	if model.Weights != "" { // records of early versions do not have it
		w.Manifest.Note["model_weights"] = model.Weights
	}
	if out.Manifest != (schema.Ref{}) {
		w.Manifest.Inputs = append(w.Manifest.Inputs, out.Manifest)
	}
	return out, nil
}

// policyOf finds the policy of another run after a step.
func (a SelectCandidates) policyOf(ctx context.Context, run string, step int) (schema.Checkpoint, api.PolicyRef,
	error) {
	none := schema.Checkpoint{}
	if step == recipes.LatestPolicy {
		var err error
		if step, err = a.LastStep(ctx, run); err != nil {
			return none, api.PolicyRef{}, err
		}
	}
	m, out, found, err := a.FindPolicy(ctx, run, step)
	if err != nil {
		return none, out, err
	}
	if !found {
		return none, out, badinput.Errorf("data.difficulty.model: run %s has committed no policy after step %d in %s",
			run, step, a.Store)
	}
	pruned, err := a.Pruned(ctx, *m.Checkpoint)
	if err == nil && pruned {
		err = badinput.Errorf("data.difficulty.model: run %s has pruned the policy after step %d; `ropewalk show %s` "+
			"lists those that are kept", run, step, run)
	}
	return *m.Checkpoint, out, err
}

// readsTokens refuses a model with another tokenizer than the recipe's.
func (a SelectCandidates) readsTokens(recipe *recipes.Recipe, model schema.Checkpoint) error {
	tokens, err := a.Recipes.Tokenizer(recipe)
	if err != nil {
		return err
	}
	want := schema.Digest(tokens.Files()[preflight.TokenizerFile])
	for _, f := range model.Files {
		if f.Name == preflight.TokenizerFile && f.Digest == want {
			return nil
		}
	}
	return badinput.Errorf("data.difficulty.model: the model has another tokenizer than the prompt " +
		"format of this recipe; its run must have the same environment, protocol and tools")
}
