package activities

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

// masks are the recipe's filters as links of the chain of resampling. They come last: what was dropped
// needs no mask, and a masked row's reward has counted all along.
func masks(recipe *recipes.Recipe) []resample.Link {
	f := recipe.Filters
	var out []resample.Link
	if f.Overlong {
		out = append(out, resample.Overlong{Limit: recipe.Rollout.MaxTokens})
	}
	if f.VoidTurns {
		out = append(out, resample.Void{Rule: resample.VoidSomeTurn})
	}
	if f.Repetition != nil {
		out = append(out, repetition(f))
	}
	if f.Unreadable {
		out = append(out, resample.Unreadable{})
	}
	return out
}

func repetition(f recipes.Filters) resample.Repetition {
	return resample.Repetition{Gram: f.Repetition.NGram, Times: f.Repetition.Times}
}

// addFacts fills in what the recipe's filters look at: the trajectories that the rewards were made
// from, and for repetitions their turns. Both are then inputs of the stage.
func (a Resample) addFacts(ctx context.Context, w *draft, in wire.ResampleInput, recipe *recipes.Recipe, rows []resample.Row) error {
	if len(masks(recipe)) == 0 {
		return nil
	}
	assembled, err := a.madeFrom(ctx, in.Rewards, wire.StageAssemble)
	if err != nil {
		return err
	}
	w.manifest.Inputs = append(w.manifest.Inputs, assembled...)
	trajectories, err := read[schema.TrajectoryRow](ctx, a.Deps, assembled...)
	if err != nil {
		return err
	}
	written := map[string][]int32{}
	if recipe.Filters.Repetition != nil {
		if written, err = a.written(ctx, w, assembled); err != nil {
			return err
		}
	}
	return fillFacts(rows, trajectories, written, recipe)
}

// madeFrom returns the manifests of a stage that the shards of a stage manifest name as their inputs.
func (d *Deps) madeFrom(ctx context.Context, ref schema.Ref, stage string) ([]schema.Ref, error) {
	m, err := d.Record.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	parts, err := d.Record.Parts(ctx, m)
	if err != nil {
		return nil, err
	}
	var out []schema.Ref
	for _, part := range append(parts, m) {
		for _, input := range part.Inputs {
			if isOfStage(input, stage) && !slices.Contains(out, input) {
				out = append(out, input)
			}
		}
	}
	return out, nil
}

// written returns, by trajectory, the tokens that the policy wrote, all turns one after the other.
func (a Resample) written(ctx context.Context, w *draft, assembled []schema.Ref) (map[string][]int32, error) {
	var refs []schema.Ref
	for _, ref := range assembled {
		more, err := a.madeFrom(ctx, ref, wire.StageRollout)
		if err != nil {
			return nil, err
		}
		refs = append(refs, more...)
	}
	w.manifest.Inputs = append(w.manifest.Inputs, refs...)
	turns, err := read[schema.TurnRow](ctx, a.Deps, refs...)
	if err != nil {
		return nil, err
	}
	out := map[string][]int32{}
	for id, row := range joinTurns(turns) {
		for t, m := range row.LossMask {
			if m == 1 {
				out[id] = append(out[id], row.TokenIDs[t])
			}
		}
	}
	return out, nil
}

// fillFacts joins the rows with their trajectories. One that was cut off at a limit of tokens, be it a
// turn's, counts as long as the limit of the whole.
func fillFacts(rows []resample.Row, trajectories []schema.TrajectoryRow, written map[string][]int32, recipe *recipes.Recipe) error {
	of := make(map[string]schema.TrajectoryRow, len(trajectories))
	for _, t := range trajectories {
		of[t.TrajectoryID] = t
	}
	for i := range rows {
		r := &rows[i]
		t, ok := of[r.TrajectoryID]
		switch {
		case r.Excluded:
			continue
		case !ok:
			return refuse(wire.FailCorrupt, "trajectory %s has a reward, and is not among those that the rewards were made from", r.TrajectoryID)
		case recipe.Filters.VoidTurns && t.VoidTurns == nil:
			return refuse(wire.FailRefused, "filters.void_turns needs to know what the turns of trajectory %s did, which the record does not say", r.TrajectoryID)
		}
		if recipe.Rollout.History == 0 { // else the limit is a turn's, and a trajectory may be longer
			r.ResponseTokens = int(t.Tokens)
		}
		if t.Finish == finishLength {
			r.ResponseTokens = max(r.ResponseTokens, recipe.Rollout.MaxTokens)
		}
		if t.VoidTurns != nil {
			r.VoidTurns = int(*t.VoidTurns)
		}
		r.Unreadable = resample.Unreadable{}.Match(t.Text)
		if recipe.Filters.Repetition != nil {
			r.Repetitive = repetition(recipe.Filters).Match(written[r.TrajectoryID])
		}
	}
	return nil
}
