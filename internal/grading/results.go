package grading

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Called reports whether the reward is the result of a user's function.
func (g *Grader) Called() bool { return g.reward.Called() }

// Arguments returns what the user's function is called with, for each trajectory that is not excluded, and its rows,
// which have no results yet. problems holds the texts of the questions by group.
func (g *Grader) Arguments(trajectories []schema.TrajectoryRow, problems map[string]string, module string,
) (rows []schema.FunctionScoreRow, arguments []map[string]any) {
	for _, t := range trajectories {
		if t.Excluded != nil {
			continue
		}
		a := map[string]any{
			"question": problems[t.GroupID], "gold": t.Gold, "answer": nil, "text": t.Text, "task": t.ProblemID,
			"level": t.Level, "turns": t.Turns, "tool_calls": t.ToolCalls, "tool_errors": t.ToolErrors,
			"tokens": t.Tokens, "finish": t.Finish, "environment_reward": nil, "environment_success": nil,
		}
		if t.HasAnswer {
			a["answer"] = t.FinalAnswer
		}
		if played, ok := g.Played[t.TrajectoryID]; ok {
			a["environment_reward"], a["environment_success"] = played.Paid, played.Solved
		}
		rows = append(rows, schema.FunctionScoreRow{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Function: module})
		arguments = append(arguments, a)
	}
	return rows, arguments
}

// FillResult puts the function's result into a row. A call without one becomes a reason that excludes the trajectory.
func FillResult(r *schema.FunctionScoreRow, score float64, success *bool, broken error) {
	if broken != nil {
		r.Excluded = new(rollout.Reason("reward function", broken.Error()))
		return
	}
	r.Score, r.Success = &score, success
}

// SettleResults takes over the function's committed results, and excludes trajectories that got none. Each trajectory
// that is not excluded must have its row.
func (g *Grader) SettleResults(rows []schema.FunctionScoreRow, trajectories []schema.TrajectoryRow) error {
	f, ok := g.reward.Function()
	if !ok {
		return fmt.Errorf("reward.name: %s calls no function", g.reward.Name)
	}
	scored := make(map[string]schema.FunctionScoreRow, len(rows))
	for _, r := range rows {
		scored[r.TrajectoryID] = r
	}
	g.results = map[string]reward.Result{}
	for i := range trajectories {
		t := &trajectories[i]
		r, found := scored[t.TrajectoryID]
		delete(scored, t.TrajectoryID)
		switch {
		case t.Excluded != nil:
		case !found:
			return refusal.Corruptf("trajectory %s has no row in function_scores", t.TrajectoryID)
		case r.Function != f.Module:
			return refusal.Unusablef("trajectory %s: its row in function_scores is of the function %s, and the reward "+
				"is %s: a replay calls no function", t.TrajectoryID, r.Function, f.Module)
		case r.Excluded != nil:
			t.Excluded = r.Excluded
		default:
			g.results[t.TrajectoryID] = f.Result(*r.Score, r.Success)
		}
	}
	for _, r := range rows {
		if _, stray := scored[r.TrajectoryID]; stray {
			return refusal.Corruptf("function_scores hold a row of trajectory %s, which the shard's trajectories do "+
				"not have", r.TrajectoryID)
		}
	}
	return nil
}

// result is the function's committed result for a trajectory; nil if there is none.
func (g *Grader) result(t schema.TrajectoryRow) *reward.Result {
	if r, ok := g.results[t.TrajectoryID]; ok {
		return &r
	}
	return nil
}
