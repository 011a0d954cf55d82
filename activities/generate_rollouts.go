package activities

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// GenerateRollouts samples one turn of one shard's trajectories. One that the engine breaks on is
// excluded; see rollout.Loop.Respond.
type GenerateRollouts struct{ *Deps }

// Execute rebuilds the shard's episodes from what is committed and commits their next turn.
func (a GenerateRollouts) Execute(ctx context.Context, in wire.GenerateInput) (wire.Generated, error) {
	out := wire.Generated{}
	inputs := append(append([]schema.Ref{in.Prompts, in.Policy.Manifest}, in.Turns...), in.Tools...)
	s := spec{scope: in.Scope, stage: wire.StageRollout, turn: in.Turn, shard: in.Shard, inputs: inputs}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		loop, episodes, err := a.episodes(ctx, recipe, in.Shard, in.Prompts, in.Turns, in.Tools)
		if err != nil {
			return err
		}
		if err := a.generate(ctx, w, in, recipe, loop, episodes); err != nil {
			return err
		}
		rows := rollout.TurnRows(episodes, in.Turn)
		for _, r := range rows {
			out.Tokens += int64(len(r.TokenIDs)) - int64(r.ContextTokens)
			if r.Excluded != nil {
				out.Excluded++
			}
		}
		for _, e := range episodes {
			if e.AwaitsResults() {
				out.Calls++
			}
		}
		w.timing.Rows, w.timing.Tokens = int64(len(rows)), out.Tokens
		return put(ctx, w, rows)
	})
	return out, err
}

func (a GenerateRollouts) generate(ctx context.Context, w *draft, in wire.GenerateInput, recipe *recipes.Recipe, loop *rollout.Loop, episodes []*rollout.Episode) error {
	if !slices.ContainsFunc(episodes, (*rollout.Episode).AwaitsResponse) {
		return nil
	}
	generator, err := w.generator(ctx, in.Scope, recipe)
	if err != nil {
		return err
	}
	return generator.use(ctx, in.Policy, false, func(engine policy.Engine) error {
		return loop.Respond(ctx, engine, in.Policy.Digest, episodes)
	})
}

// episodes rebuilds one shard's episodes from its prompts and the committed turns and tool calls.
func (d *Deps) episodes(ctx context.Context, recipe *recipes.Recipe, shard int, prompts schema.Ref, turns, tools []schema.Ref) (*rollout.Loop, []*rollout.Episode, error) {
	loop, err := d.loop(recipe, recipe.Rollout.Temperature)
	if err != nil {
		return nil, nil, err
	}
	promptRows, err := read[schema.PromptRow](ctx, d, prompts)
	if err != nil {
		return nil, nil, err
	}
	turnRows, err := read[schema.TurnRow](ctx, d, turns...)
	if err != nil {
		return nil, nil, err
	}
	callRows, err := read[schema.ToolCallRow](ctx, d, tools...)
	if err != nil {
		return nil, nil, err
	}
	if promptRows, err = shardPrompts(promptRows, shard, recipe.Rollout); err != nil {
		return nil, nil, err
	}
	episodes, err := loop.Episodes(promptRows, recipe.Rollout.Oversample, turnRows, callRows)
	return loop, episodes, err
}
