package activities

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// GenerateRollouts samples one turn of one shard's trajectories. A trajectory that the engine fails on is excluded;
// see rollout.Loop.Respond.
type GenerateRollouts struct{ *Deps }

// Execute continues the shard's episodes from their committed state and commits their next turn.
func (a GenerateRollouts) Execute(ctx context.Context, in api.GenerateInput) (api.Generated, error) {
	out := api.Generated{}
	inputs := append([]schema.Ref{in.Prompts, in.Policy.Manifest}, in.Inputs()...)
	s := spec{scope: in.Scope, stage: api.StageRollout, turn: in.Turn, shard: in.Shard, inputs: inputs}
	var held []*rollout.Episode
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		loop, episodes, err := a.episodes(ctx, recipe, in.Shard, in.Prompts, in.Past)
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
		held = episodes
		return put(ctx, w, rows)
	})
	a.hold(out.Done, err, held)
	return out, err
}

func (a GenerateRollouts) generate(ctx context.Context, w *draft, in api.GenerateInput, recipe *recipes.Recipe,
	loop *rollout.Loop, episodes []*rollout.Episode) error {
	if !slices.ContainsFunc(episodes, (*rollout.Episode).AwaitsResponse) {
		return nil
	}
	sampler, err := w.sampler(ctx, in.Scope, recipe)
	if err != nil {
		return err
	}
	return sampler.Use(ctx, version(in.Policy), func(s policy.Sampler) error {
		return loop.Respond(ctx, s, in.Policy.Digest, episodes)
	})
}
