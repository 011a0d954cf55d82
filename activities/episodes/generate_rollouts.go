package episodes

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// GenerateRollouts samples one turn of one shard's trajectories. A trajectory that the engine fails on is excluded;
// see rollout.Loop.Respond.
type GenerateRollouts struct{ *stage.Worker }

// Execute continues the shard's episodes from their committed state and commits their next turn.
func (a GenerateRollouts) Execute(ctx context.Context, e *stage.Env, in api.GenerateInput) (out api.Generated,
	err error) {
	inputs := append([]schema.Ref{in.Prompts, in.Policy.Manifest}, in.Inputs()...)
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageRollout, Turn: in.Turn, Shard: in.Shard, Inputs: inputs}
	var held []*rollout.Episode
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		loop, episodes, err := AsOf(ctx, a.Worker, w.Recipe, in.Shard, in.Prompts, in.Past)
		if err != nil {
			return err
		}
		episodes, wrote, err := a.generate(ctx, w, in, loop, episodes)
		if err != nil {
			return err
		}
		w.Env.Verdicts.End(rollout.Leaves(episodes)...)
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
		w.Timing.Rows, w.Timing.Tokens = int64(len(rows)), out.Tokens
		w.Env.Turnwise.Responded(episodes, len(wrote), out.Tokens)
		held = episodes
		lag := int32(min(w.Recipe.Staleness(), in.Step-1))
		for i := range rows {
			if rows[i].Excluded == nil {
				rows[i].Lag = &lag
			}
		}
		if w.Recipe.InFlight() {
			if err := a.nameSamplers(ctx, w, in, rows); err != nil {
				return err
			}
		}
		if err := stage.Put(ctx, w, rows); err != nil || w.Recipe.Rollout.Tree == nil {
			return err
		}
		return stage.Put(ctx, w, rollout.BranchRows(wrote))
	})
	keepEpisodes(a.Worker, out.Done, err, held)
	if err == nil && e.Flow != nil && out.Calls == 0 && out.Open > 0 { // no calls follow a summary
		e.Flow.Committed(in.Turn+1, in.Turn+1)
	}
	return out, err
}

// generate returns all episodes of the shard, and those that have a new turn.
func (a GenerateRollouts) generate(ctx context.Context, w *stage.Draft, in api.GenerateInput, loop *rollout.Loop,
	episodes []*rollout.Episode) (all, wrote []*rollout.Episode, err error) {
	if all, err = loop.Grow(episodes); err != nil || !slices.ContainsFunc(all, (*rollout.Episode).AwaitsResponse) {
		return all, nil, err
	}
	if f := w.Env.Flow; f != nil {
		return loop.RoundBy(all, func(all []*rollout.Episode) error {
			return a.fromFlow(ctx, w, f, in, loop, all)
		})
	}
	sampler, by, err := a.newest(ctx, w, in)
	if err != nil {
		return nil, nil, err
	}
	err = sampler.Use(ctx, stage.Version(by), func(s policy.Sampler) (err error) {
		defer w.Progress.Samples(s)()
		all, wrote, err = loop.Round(ctx, s, by.Digest, all)
		return err
	})
	return all, wrote, err
}

// fromFlow takes responses from the flow that works ahead. What the flow has left is generated here.
func (a GenerateRollouts) fromFlow(ctx context.Context, w *stage.Draft, f *stage.Flow, in api.GenerateInput,
	loop *rollout.Loop, all []*rollout.Episode) error {
	wrote := rollout.AwaitingResponses(all)
	left, began, err := f.Respond(ctx, in.Policy.Digest, wrote)
	if err != nil {
		return err
	}
	w.Since(began) // again for a tree's branches, which come after the others
	if len(left) == 0 {
		return nil
	}
	sampler, by, err := a.newest(ctx, w, in)
	if err != nil {
		return err
	}
	return sampler.Use(ctx, stage.Version(by), func(s policy.Sampler) error {
		return loop.RespondLeft(ctx, s, by.Digest, left, all, len(left) < len(wrote))
	})
}

// newest leases the sampler for the newest policy that may write the turn.
func (a GenerateRollouts) newest(ctx context.Context, w *stage.Draft, in api.GenerateInput) (*enginepool.Sampler,
	api.PolicyRef, error) {
	sampler, err := w.Sampler(ctx, in.Scope, w.Recipe)
	if err != nil {
		return nil, api.PolicyRef{}, err
	}
	sampling, err := NewSamplers(ctx, a.Worker, in.Scope, w.Recipe, in.Policy)
	if err != nil {
		return nil, api.PolicyRef{}, err
	}
	return sampler, sampling.Newest(), nil
}

// nameSamplers makes the policies that wrote the rows of a turn inputs of it, and counts the updates since.
func (a GenerateRollouts) nameSamplers(ctx context.Context, w *stage.Draft, in api.GenerateInput,
	rows []schema.TurnRow) error {
	sampling, err := NewSamplers(ctx, a.Worker, in.Scope, w.Recipe, in.Policy)
	if err != nil {
		return err
	}
	for i, r := range rows {
		by, ok := sampling.Of(r.PolicyVersion)
		if !ok {
			return fmt.Errorf("%w: turn %d of %s is of version %s, which the run had not published before step %d",
				commit.ErrDamaged, r.Turn, r.TrajectoryID, r.PolicyVersion, in.Step)
		}
		if r.Lag != nil {
			rows[i].Lag = new(min(*r.Lag, int32(in.Step-1-by.Step)))
		}
		if !slices.Contains(w.Manifest.Inputs, by.Manifest) {
			w.Manifest.Inputs = append(w.Manifest.Inputs, by.Manifest)
		}
	}
	return nil
}
