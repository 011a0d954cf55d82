package analysis

import (
	"cmp"
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"

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
	Held                  *schema.EvaluationRow // of an episode of an evaluation, which has no reward and no selection
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
	g, within := rescue.WithContext(ctx) // each table takes several round trips to a store
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

// EvaluationOutcomes returns every episode of a step's evaluation, in canonical order.
func (v *Visible) EvaluationOutcomes(ctx context.Context, step int) ([]Outcome, error) {
	manifests, err := v.evaluationsAt(ctx, step)
	if err != nil {
		return nil, err
	}
	trajectories, err := heldRows[schema.EvaluationTrajectoryRow](ctx, v, manifests, trajectoryColumns...)
	if err != nil {
		return nil, err
	}
	out := make([]Outcome, len(trajectories))
	at := make(map[string]*Outcome, len(out))
	slices.SortFunc(trajectories, func(a, b schema.EvaluationTrajectoryRow) int {
		return cmp.Compare(a.TrajectoryID, b.TrajectoryID)
	})
	for i := range trajectories {
		t := schema.TrajectoryRow(trajectories[i])
		out[i] = Outcome{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Trajectory: &t}
		at[t.TrajectoryID] = &out[i]
	}
	prompts, err := heldRows[schema.EvaluationPromptRow](ctx, v, manifests, "group_id", "problem")
	if err != nil {
		return nil, err
	}
	problems := make(map[string]*string, len(prompts))
	for i, p := range prompts {
		problems[p.GroupID] = &prompts[i].Problem
	}
	for i := range out {
		out[i].Problem = problems[out[i].GroupID]
	}
	calls, err := heldRows[schema.EvaluationCallRow](ctx, v, manifests, "trajectory_id", "turn", "call", "status")
	if err != nil {
		return nil, err
	}
	slices.SortFunc(calls, func(a, b schema.EvaluationCallRow) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Call, b.Call))
	})
	for _, c := range calls {
		if o := at[c.TrajectoryID]; o != nil {
			o.Statuses = append(o.Statuses, c.Status)
		}
	}
	return out, eachHeld(ctx, v, manifests, func(r schema.EvaluationRow) {
		if r.TrajectoryID != nil && at[*r.TrajectoryID] != nil {
			at[*r.TrajectoryID].Held = &r
		}
	})
}
