package analysis

import (
	"cmp"
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// Episodes returns every trajectory of a finished step with everything that was recorded of it, in canonical order.
func (v *Visible) Episodes(ctx context.Context, step int) ([]Episode, error) {
	trajectories, err := stepRows[schema.TrajectoryRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	rewards, err := stepRows[schema.RewardRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	selection, err := stepRows[schema.SelectionRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	prompts, err := stepRows[schema.PromptRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	promptOf := make(map[string]schema.PromptRow, len(prompts))
	for _, p := range prompts {
		promptOf[p.GroupID] = p
	}
	out := make([]Episode, len(trajectories))
	at := make(map[string]*Episode, len(out))
	slices.SortFunc(trajectories, func(a, b schema.TrajectoryRow) int {
		return cmp.Compare(a.TrajectoryID,
			b.TrajectoryID)
	})
	for i, t := range trajectories {
		out[i] = Episode{Prompt: promptOf[t.GroupID], Trajectory: t}
		at[t.TrajectoryID] = &out[i]
	}
	for i, r := range rewards {
		if e := at[r.TrajectoryID]; e != nil {
			e.Reward = &rewards[i]
		}
	}
	for _, s := range selection {
		if e := at[s.TrajectoryID]; e != nil {
			e.Selection = s
		}
	}
	return out, v.conversation(ctx, step, at)
}
