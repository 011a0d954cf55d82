package verdict

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// CallFunction calls the user's reward function with the trajectories of one shard. The reward reads the committed
// results, so replays need no Python.
type CallFunction struct{ *stage.Worker }

// Execute commits one row for each trajectory that is not excluded. A call that raises, hangs or returns no finite
// number excludes its trajectory. If all calls break, the stage fails and can be tried again.
func (a CallFunction) Execute(ctx context.Context, e *stage.Env, in api.VerdictInput) (api.Verdicts, error) {
	return Answer(ctx, a.Worker, e, a, in)
}

// Stage implements Source.
func (CallFunction) Stage() string { return schema.StageFunction }

// Asked implements Source.
func (CallFunction) Asked(r *recipes.Recipe) bool { return r.Reward.Called() }

// NeedsProblems implements Source.
func (CallFunction) NeedsProblems() bool { return true }

// Missing implements Source: a replay calls the function again.
func (CallFunction) Missing() string { return "" }

// Ask implements Source.
func (a CallFunction) Ask(ctx context.Context, w *stage.Draft, q *Questions, out *api.Verdicts) error {
	g, err := grader(ctx, w, q.Step, q.Trajectories)
	if err != nil {
		return err
	}
	rows, err := a.called(ctx, w, q.Scope, g, q.Answers, q.Problems)
	if err != nil {
		return err
	}
	out.Asked, out.Questions, out.Edited = len(rows), len(rows), w.Edited
	for _, r := range rows {
		switch {
		case r.Excluded != nil:
			out.Excluded++
		case r.Success != nil && *r.Success:
			out.Right++
		}
	}
	return stage.Put(ctx, w, rows)
}

// Settle implements Source.
func (a CallFunction) Settle(ctx context.Context, g *grading.Grader, made schema.Ref,
	trajectories []schema.TrajectoryRow) error {
	rows, err := record.Read[schema.FunctionScoreRow](ctx, a.Records, made)
	if err != nil {
		return err
	}
	return g.SettleResults(rows, trajectories)
}

// called calls the function, returns its results and notes its code. It takes over results that are there early.
func (a CallFunction) called(ctx context.Context, w *stage.Draft, scope api.Scope, g *grading.Grader,
	trajectories []schema.TrajectoryRow, problems map[string]string) ([]schema.FunctionScoreRow, error) {
	f, ok := w.Recipe.Function()
	if !ok {
		return nil, fmt.Errorf("reward.name: %s calls no function", w.Recipe.Reward.Name)
	}
	if field, text := f.Fault(); text != "" {
		return nil, badinput.Errorf("reward.%s: %s", field, text)
	}
	if f.Module == "" {
		return nil, badinput.Errorf("reward.module: recipe %s names no function", w.Recipe.Name)
	}
	rows, arguments := g.Arguments(trajectories, problems, f.Module)
	if len(rows) == 0 {
		return rows, nil
	}
	early, began, err := w.Env.Verdicts.Scored(ctx, rows, arguments)
	if err != nil {
		return nil, err
	}
	w.Since(began)
	for i, r := range early {
		grading.FillResult(&rows[i], r.Score, r.Success, nil)
	}
	left := leftToScore(len(rows), early)
	open := make([]map[string]any, len(left))
	for i, at := range left {
		open[i] = arguments[at]
	}
	results, err := a.Execution.Functions.Score(ctx, f, open, w.Progress.Set)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		if _, has := early[left[i]]; !has {
			grading.FillResult(&rows[left[i]], r.Score, r.Success, r.Broken)
		}
	}
	files, err := a.Execution.Functions.Code(ctx, f)
	if err != nil {
		return nil, err
	}
	return rows, w.NoteCode(ctx, scope, schema.NoteRewardCode, files)
}

// leftToScore returns the positions of n trajectories that have no result yet. If any others have, the first of them is
// among these again: whether the function or a trajectory is to blame for calls that break depends on whether others of
// the shard get results.
func leftToScore(n int, made map[int]remote.Scored) []int {
	var left []int
	again := len(made) > 0 && len(made) < n
	for i := range n {
		_, has := made[i]
		if !has || again {
			left = append(left, i)
		}
		again = again && !has
	}
	return left
}
