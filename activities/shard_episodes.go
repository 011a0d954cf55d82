package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// hold keeps the episodes that an activity has committed. It does not keep them if the activity adopted another
// attempt's commit, which may differ from them.
func (d *Deps) hold(done api.Done, err error, episodes []*rollout.Episode) {
	if err == nil && !done.Adopted && episodes != nil {
		d.Held.put(done.Manifest.Digest, episodes)
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

// episodes returns one shard's episodes as of its past. It takes the episodes that this worker holds and applies the
// rows committed since, or rebuilds the episodes from the shard's prompts and all committed rows. The caller owns
// them.
func (d *Deps) episodes(ctx context.Context, recipe *recipes.Recipe, shard int, prompts schema.Ref,
	past api.Past) (*rollout.Loop, []*rollout.Episode, error) {
	draws := rolloutSampling(recipe)
	draws.tree = treeOf(recipe)
	loop, err := d.Recipes.loop(recipe, draws)
	if err != nil {
		return nil, nil, err
	}
	var episodes []*rollout.Episode
	later, err := d.behind(ctx, past, func(ref schema.Ref) bool {
		episodes = d.Held.take(ref.Digest)
		return episodes != nil
	})
	if err != nil {
		return nil, nil, err
	}
	if episodes == nil {
		rows, err := d.promptsOf(ctx, prompts, shard, recipe.Rollout)
		if err != nil {
			return nil, nil, err
		}
		if episodes, err = loop.Episodes(ctx, rows, recipe.Rollout.SamplesPerPrompt, rollout.Rows{}); err != nil {
			return nil, nil, err
		}
	}
	rows := rollout.Rows{}
	if rows.Turns, err = commit.Rows[schema.TurnRow](ctx, d.Record,
		ofStage(later, schema.StageRollout)...); err != nil {
		return nil, nil, err
	}
	if rows.Branches, err = commit.Rows[schema.BranchRow](ctx, d.Record,
		ofStage(later, schema.StageRollout)...); err != nil {
		return nil, nil, err
	}
	if rows.Calls, err = commit.Rows[schema.ToolCallRow](ctx, d.Record,
		ofStage(later, schema.StageSandbox)...); err != nil {
		return nil, nil, err
	}
	if rows.Transitions, err = commit.Rows[schema.TransitionRow](ctx, d.Record,
		ofStage(later, schema.StageSandbox)...); err != nil {
		return nil, nil, err
	}
	episodes, err = loop.Advance(ctx, episodes, rows)
	return loop, episodes, err
}
