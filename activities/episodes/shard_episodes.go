package episodes

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// keepEpisodes keeps the episodes that an activity has committed. It does not keep them if the activity adopted another
// attempt's commit, which may differ from them.
func keepEpisodes(d *stage.Worker, done api.Done, err error, episodes []*rollout.Episode) {
	if err == nil && !done.Adopted && episodes != nil {
		d.Episodes.Put(done.Manifest.Digest, episodes)
	}
}

// treeOf returns the tree of a recipe's samples; nil if they are independent.
func treeOf(recipe *recipes.Recipe) *rollout.Tree {
	tree := recipe.Rollout.Branching()
	if tree != nil && recipe.Sandbox.Session {
		tree.Stateful = []string{tools.Python.Name}
	}
	return tree
}

// AsOf returns one shard's episodes as of its past. It takes the episodes that this worker holds and applies the
// rows committed since, or rebuilds the episodes from the shard's prompts and all committed rows. The caller owns
// them.
func AsOf(ctx context.Context, d *stage.Worker, recipe *recipes.Recipe, shard int, prompts schema.Ref,
	past api.Past) (*rollout.Loop, []*rollout.Episode, error) {
	draws := resolver.RolloutSampling(recipe)
	draws.Tree = treeOf(recipe)
	loop, err := d.Recipes.Loop(recipe, draws)
	if err != nil {
		return nil, nil, err
	}
	var episodes []*rollout.Episode
	later, err := d.Behind(ctx, past, func(ref schema.Ref) bool {
		episodes = d.Episodes.Take(ref.Digest)
		return episodes != nil
	})
	if err != nil {
		return nil, nil, err
	}
	if episodes == nil {
		rows, err := d.PromptsOf(ctx, prompts, shard, recipe.Rollout)
		if err != nil {
			return nil, nil, err
		}
		if episodes, err = loop.Episodes(ctx, rows, recipe.Rollout.SamplesPerPrompt, rollout.Rows{}); err != nil {
			return nil, nil, err
		}
	}
	turns, results := record.OfStage(later, schema.StageRollout), record.OfStage(later, schema.StageSandbox)
	rows := rollout.Rows{}
	if rows.Turns, err = commit.Rows[schema.TurnRow](ctx, d.Record, turns...); err != nil {
		return nil, nil, err
	}
	if rows.Branches, err = commit.Rows[schema.BranchRow](ctx, d.Record, turns...); err != nil {
		return nil, nil, err
	}
	if rows.Calls, err = commit.Rows[schema.ToolCallRow](ctx, d.Record, results...); err != nil {
		return nil, nil, err
	}
	if rows.Transitions, err = commit.Rows[schema.TransitionRow](ctx, d.Record, results...); err != nil {
		return nil, nil, err
	}
	episodes, err = loop.Advance(ctx, episodes, rows)
	return loop, episodes, err
}
