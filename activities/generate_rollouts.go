package activities

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// GenerateRollouts samples one turn of one shard's trajectories. A trajectory that the engine fails on is excluded;
// see rollout.Loop.Respond.
type GenerateRollouts struct{ *Deps }

// Execute continues the shard's episodes from their committed state and commits their next turn.
func (a GenerateRollouts) Execute(ctx context.Context, e *Env, in api.GenerateInput) (api.Generated, error) {
	out := api.Generated{}
	inputs := append([]schema.Ref{in.Prompts, in.Policy.Manifest}, in.Inputs()...)
	s := spec{scope: in.Scope, stage: schema.StageRollout, turn: in.Turn, shard: in.Shard, inputs: inputs}
	var held []*rollout.Episode
	err := execute(ctx, a.Deps, e, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.Recipes.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		loop, episodes, err := a.episodes(ctx, recipe, in.Shard, in.Prompts, in.Past)
		if err != nil {
			return err
		}
		episodes, wrote, err := a.generate(ctx, w, in, recipe, loop, episodes)
		if err != nil {
			return err
		}
		w.env.verdicts.ended(rollout.Leaves(episodes)...)
		rows := rollout.LastTurnRows(wrote)
		for _, r := range rows {
			out.Tokens += int64(len(r.TokenIDs)) - int64(r.ContextTokens)
			if r.Excluded != nil {
				out.Excluded++
			}
		}
		for _, e := range episodes {
			switch {
			case e.AwaitsResults():
				out.Calls++
			case e.AwaitsResponse():
				out.Open++
			}
		}
		w.timing.Rows, w.timing.Tokens = int64(len(rows)), out.Tokens
		w.env.turnwise.responded(episodes, len(wrote), out.Tokens)
		held = episodes
		lag := int32(min(recipe.Staleness(), in.Step-1))
		for i := range rows {
			if rows[i].Excluded == nil {
				rows[i].Lag = &lag
			}
		}
		if recipe.InFlight() {
			if err := a.nameSamplers(ctx, w, in, recipe, rows); err != nil {
				return err
			}
		}
		if err := put(ctx, w, rows); err != nil || recipe.Rollout.Tree == nil {
			return err
		}
		return put(ctx, w, rollout.BranchRows(wrote))
	})
	a.hold(out.Done, err, held)
	if err == nil && e.flow != nil && out.Calls == 0 && out.Open > 0 { // no calls follow a summary
		e.flow.Committed(in.Turn+1, in.Turn+1)
	}
	return out, err
}

// generate returns all episodes of the shard, and those that have a new turn.
func (a GenerateRollouts) generate(ctx context.Context, w *draft, in api.GenerateInput, recipe *recipes.Recipe,
	loop *rollout.Loop, episodes []*rollout.Episode) (all, wrote []*rollout.Episode, err error) {
	if all, err = loop.Grow(episodes); err != nil || !slices.ContainsFunc(all, (*rollout.Episode).AwaitsResponse) {
		return all, nil, err
	}
	if f := w.env.flow; f != nil {
		return loop.RoundBy(all, func(all []*rollout.Episode) error {
			return a.fromFlow(ctx, w, f, in, recipe, loop, all)
		})
	}
	sampler, err := w.sampler(ctx, in.Scope, recipe)
	if err != nil {
		return nil, nil, err
	}
	sampling, err := a.samplers(ctx, in.Scope, recipe, in.Policy)
	if err != nil {
		return nil, nil, err
	}
	by := sampling.newest()
	err = sampler.Use(ctx, version(by), func(s policy.Sampler) (err error) {
		defer w.progress.samples(s)()
		all, wrote, err = loop.Round(ctx, s, by.Digest, all)
		return err
	})
	return all, wrote, err
}

// fromFlow takes responses from the flow that works ahead. What the flow has left is generated here.
func (a GenerateRollouts) fromFlow(ctx context.Context, w *draft, f *Flow, in api.GenerateInput,
	recipe *recipes.Recipe, loop *rollout.Loop, all []*rollout.Episode) error {
	wrote := rollout.AwaitingResponses(all)
	left, began, err := f.Respond(ctx, in.Policy.Digest, wrote)
	if err != nil {
		return err
	}
	w.since(began) // again for a tree's branches, which come after the others
	if len(left) == 0 {
		return nil
	}
	sampler, err := w.sampler(ctx, in.Scope, recipe)
	if err != nil {
		return err
	}
	sampling, err := a.samplers(ctx, in.Scope, recipe, in.Policy)
	if err != nil {
		return err
	}
	by := sampling.newest()
	return sampler.Use(ctx, version(by), func(s policy.Sampler) error {
		return loop.RespondLeft(ctx, s, by.Digest, left, all, len(left) < len(wrote))
	})
}

// nameSamplers makes the policies that wrote the rows of a turn inputs of it, and counts the updates since.
func (a GenerateRollouts) nameSamplers(ctx context.Context, w *draft, in api.GenerateInput, recipe *recipes.Recipe,
	rows []schema.TurnRow) error {
	sampling, err := a.samplers(ctx, in.Scope, recipe, in.Policy)
	if err != nil {
		return err
	}
	for i, r := range rows {
		by, ok := sampling.of(r.PolicyVersion)
		if !ok {
			return fmt.Errorf("%w: turn %d of %s is of version %s, which the run had not published before step %d",
				commit.ErrDamaged, r.Turn, r.TrajectoryID, r.PolicyVersion, in.Step)
		}
		if r.Lag != nil {
			rows[i].Lag = new(min(*r.Lag, int32(in.Step-1-by.Step)))
		}
		if !slices.Contains(w.manifest.Inputs, by.Manifest) {
			w.manifest.Inputs = append(w.manifest.Inputs, by.Manifest)
		}
	}
	return nil
}
