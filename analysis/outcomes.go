package analysis

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

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
	promptColumns = []string{"group_id", "problem"}
	callColumns   = []string{"trajectory_id", "turn", "call", "status"}
)

// Outcomes returns every trajectory of a finished step, also of skipped shards, in canonical order.
func (v *Visible) Outcomes(ctx context.Context, step int) ([]Outcome, error) {
	var t stepTables
	l := v.loader(ctx, step)
	load(l, &t.trajectories, trajectoryColumns...)
	load(l, &t.rewards, rewardColumns...)
	load(l, &t.selection)
	load(l, &t.prompts, promptColumns...)
	load(l, &t.calls, callColumns...)
	if err := l.Wait(); err != nil {
		return nil, err
	}
	return t.outcomes(), nil
}

// EvaluationOutcomes returns every episode of a step's evaluation, in canonical order.
func (v *Visible) EvaluationOutcomes(ctx context.Context, step int) ([]Outcome, error) {
	manifests, err := v.evaluationsAt(ctx, step)
	if err != nil {
		return nil, err
	}
	var t stepTables
	err = errors.Join(
		eachHeld(ctx, v, manifests, func(r schema.EvaluationTrajectoryRow) {
			t.trajectories = append(t.trajectories, schema.TrajectoryRow(r))
		}, trajectoryColumns...),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationPromptRow) {
			t.prompts = append(t.prompts, schema.PromptRow(r))
		}, promptColumns...),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationCallRow) {
			t.calls = append(t.calls, schema.ToolCallRow(r))
		}, callColumns...),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationRow) { t.held = append(t.held, r) }))
	return t.outcomes(), err
}

// outcomes joins the rows by trajectory, in canonical order.
func (t stepTables) outcomes() []Outcome {
	at := map[string]*Outcome{}
	of := func(group, trajectory string) *Outcome {
		if at[trajectory] == nil {
			at[trajectory] = &Outcome{GroupID: group, TrajectoryID: trajectory}
		}
		return at[trajectory]
	}
	for i, r := range t.trajectories {
		of(r.GroupID, r.TrajectoryID).Trajectory = &t.trajectories[i]
	}
	for i, s := range t.selection {
		of(s.GroupID, s.TrajectoryID).Selection = &t.selection[i]
	}
	for i, r := range t.rewards {
		if o := at[r.TrajectoryID]; o != nil {
			o.Reward = &t.rewards[i]
		}
	}
	for i, h := range t.held {
		if h.TrajectoryID != nil && at[*h.TrajectoryID] != nil {
			at[*h.TrajectoryID].Held = &t.held[i]
		}
	}
	slices.SortFunc(t.calls, func(a, b schema.ToolCallRow) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Call, b.Call))
	})
	for _, c := range t.calls {
		if o := at[c.TrajectoryID]; o != nil {
			o.Statuses = append(o.Statuses, c.Status)
		}
	}
	problems := make(map[string]*string, len(t.prompts))
	for i, p := range t.prompts {
		problems[p.GroupID] = &t.prompts[i].Problem
	}
	all := make([]Outcome, 0, len(at))
	for _, id := range slices.Sorted(maps.Keys(at)) {
		at[id].Problem = problems[at[id].GroupID]
		all = append(all, *at[id])
	}
	return all
}
