package activities

import (
	"context"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

// Resample decides which trajectories enter the update, how often, and why each other does not.
type Resample struct{ *Deps }

// Execute selects over all of the step's rewards. Every trajectory sampled gets a row: what was
// excluded, by itself or with its shard, with its reason and no reward.
func (a Resample) Execute(ctx context.Context, in wire.ResampleInput) (wire.Resampled, error) {
	out := wire.Resampled{}
	s := spec{scope: in.Scope, stage: wire.StageResample, turn: -1, shard: -1, inputs: []schema.Ref{in.Rewards}}
	if len(in.Excluded) > 0 {
		s.inputs = append(s.inputs, in.Prompts)
	}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		skipped, err := a.skipped(ctx, in, recipe)
		if err != nil {
			return err
		}
		rewards, err := read[schema.RewardRow](ctx, a.Deps, in.Rewards)
		if err != nil {
			return err
		}
		excluded, err := read[schema.SelectionRow](ctx, a.Deps, in.Rewards) // what could not be scored
		if err != nil {
			return err
		}
		excluded = append(excluded, skipped...)
		if err := checkExcluded(rewards, excluded); err != nil {
			return err
		}
		rows := resampleRows(rewards, excluded)
		if err := setRounds(rows, recipe); err != nil {
			return err
		}
		if err := a.addFacts(ctx, w, in, recipe, rows); err != nil {
			return err
		}
		selection, err := resample.Select(rows, resampleOptions(recipe, in.Scope))
		if err != nil {
			return err
		}
		countSelection(&out, selection)
		w.timing.Rows = int64(len(selection.Rows))
		if err := noteExcluded(w, in.Excluded, len(excluded)); err != nil {
			return err
		}
		return put(ctx, w, selectionRows(selection, excluded))
	})
	return out, err
}

func countSelection(out *wire.Resampled, selection resample.Selection) {
	out.Kept, out.Dropped = selection.KeptRows, len(selection.Rows)-selection.KeptRows
	out.KeptGroups, out.DroppedGroups = selection.KeptGroups, selection.Groups-selection.KeptGroups
	out.Reasons = map[string]int{}
	for reason, n := range selection.DroppedBy {
		out.Reasons[string(reason)] = n
	}
	for reason, n := range selection.MaskedBy {
		if out.Masked == nil {
			out.Masked = map[string]int{}
		}
		out.Masked[string(reason)] = n
	}
}

func resampleRows(rewards []schema.RewardRow, excluded []schema.SelectionRow) []resample.Row {
	rows := make([]resample.Row, 0, len(rewards)+len(excluded))
	for _, r := range rewards {
		rows = append(rows, resample.Row{
			GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Reward: r.Reward,
			ToolCalls: int(r.ToolCalls), ToolErrors: int(r.ToolErrors), AnswerTags: int(r.AnswerTags), Turns: int(r.Turns),
		})
	}
	for _, e := range excluded {
		rows = append(rows, resample.Row{GroupID: e.GroupID, TrajectoryID: e.TrajectoryID, Excluded: true})
	}
	return rows
}

// resampleOptions takes the chain out of the recipe; each group draws from a stream of its own.
func resampleOptions(recipe *recipes.Recipe, scope wire.Scope) resample.Options {
	o := resample.Options{Source: func(label, group string) *rand.Rand {
		return seed.Rand("resample/"+label+"/"+group, recipe.Seed, uint64(scope.Step))
	}}
	o.Dynamic = dynamicSampling(recipe, scope.Step)
	o.RejectEqual, o.Masks = recipe.Resample.RejectEqual, masks(recipe)
	if l := recipe.Resample.LowVariance; l != nil {
		o.LowVariance = &resample.LowVariance{Keep: l.Keep, Deviation: resample.Deviation(l.Std), Reverse: l.Reverse}
	}
	if v := recipe.Resample.VSPO; v != nil {
		o.VSPO = &advantage.VSPO{Alpha: v.Alpha, Temperature: v.Temperature, MinVariance: v.MinVariance}
	}
	if r := recipe.Resample.RoC; r != nil {
		o.RoC = &resample.RoC{
			Keep: r.Keep, Counts: resample.Counts(r.Counts), Choice: resample.Choice(r.Select),
			MinPositive: r.MinPositive, MinNegative: r.MinNegative,
			// Dynamic sampling has dropped the groups of equal rewards that it does not want: those that are
			// left fill up its last try, or are of a step that takes every group.
			KeepEqual: recipe.Resample.Dynamic != nil,
		}
	}
	return o
}

func selectionRows(selection resample.Selection, excluded []schema.SelectionRow) []schema.SelectionRow {
	why := make(map[string]*string, len(excluded))
	for _, e := range excluded {
		why[e.TrajectoryID] = e.Excluded
	}
	rows := make([]schema.SelectionRow, len(selection.Rows))
	for i, r := range selection.Rows {
		rows[i] = schema.SelectionRow{
			GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Kept: r.Kept, Count: int32(r.Count), Weight: r.Weight,
			Reason: string(r.Reason), GroupMean: r.GroupMean, GroupVariance: r.GroupVariance, ValueScore: r.ValueScore,
			Excluded: why[r.TrajectoryID],
		}
		if r.Masked {
			rows[i].Reason, rows[i].Masked = "", new(string(r.Reason))
		}
	}
	return rows
}
