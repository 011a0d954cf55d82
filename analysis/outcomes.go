package analysis

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/schema"
)

// Outcome is one trajectory of a finished step without its turns: what a list of trajectories shows.
type Outcome struct {
	GroupID, TrajectoryID string
	Trajectory            *schema.TrajectoryRow // some of its columns; nil where its whole shard was skipped
	Reward                *schema.RewardRow     // some of its columns; nil where it was excluded
	Selection             *schema.SelectionRow  // nil where the step selected nothing
	Problem               *string               // nil where the step has no such prompt
	Statuses              []string              // of its tool calls, in their order
}

// The columns that outcomes have. What an import kept of its source, which may be large, is not among them.
var (
	trajectoryColumns = []string{"group_id", "trajectory_id", "problem_id", "level", "source", "turns", "tool_calls",
		"tool_errors", "tokens", "response_tokens", "finish", "final_answer", "has_answer", "gold", "text", "excluded"}
	rewardColumns = []string{"group_id", "trajectory_id", "reward", "outcome", "success", "verdict"}
)

// Outcomes returns every trajectory of a finished step, those of skipped shards too, in canonical order.
func (v *Visible) Outcomes(ctx context.Context, step int) ([]Outcome, error) {
	var (
		trajectories []schema.TrajectoryRow
		rewards      []schema.RewardRow
		selection    []schema.SelectionRow
		prompts      []schema.PromptRow
		calls        []schema.ToolCallRow
	)
	g, within := errgroup.WithContext(ctx) // each table takes several round trips to a store
	g.Go(func() error { return readStep(within, v, step, &trajectories, trajectoryColumns...) })
	g.Go(func() error { return readStep(within, v, step, &rewards, rewardColumns...) })
	g.Go(func() error { return readStep(within, v, step, &selection) })
	g.Go(func() error { return readStep(within, v, step, &prompts, "group_id", "problem") })
	g.Go(func() error { return readStep(within, v, step, &calls, "trajectory_id", "turn", "call", "status") })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := make([]Outcome, 0, max(len(trajectories), len(selection)))
	at := make(map[string]int, cap(all))
	of := func(group, trajectory string) *Outcome {
		i, ok := at[trajectory]
		if !ok {
			i = len(all)
			at[trajectory], all = i, append(all, Outcome{GroupID: group, TrajectoryID: trajectory})
		}
		return &all[i]
	}
	for i, t := range trajectories {
		of(t.GroupID, t.TrajectoryID).Trajectory = &trajectories[i]
	}
	for i, s := range selection {
		of(s.GroupID, s.TrajectoryID).Selection = &selection[i]
	}
	problems := make(map[string]*string, len(prompts))
	for i, p := range prompts {
		problems[p.GroupID] = &prompts[i].Problem
	}
	for i := range all {
		all[i].Problem = problems[all[i].GroupID]
	}
	for i, r := range rewards {
		if o, ok := at[r.TrajectoryID]; ok {
			all[o].Reward = &rewards[i]
		}
	}
	slices.SortFunc(calls, func(a, b schema.ToolCallRow) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Call, b.Call))
	})
	for _, c := range calls {
		if o, ok := at[c.TrajectoryID]; ok {
			all[o].Statuses = append(all[o].Statuses, c.Status)
		}
	}
	slices.SortFunc(all, func(a, b Outcome) int { return cmp.Compare(a.TrajectoryID, b.TrajectoryID) })
	return all, nil
}

// readStep reads columns of one step's rows of R's table.
func readStep[R schema.Row](ctx context.Context, v *Visible, step int, into *[]R, columns ...string) (err error) {
	*into, err = stepRows[R](ctx, v, step, columns...)
	return err
}
