package verdict

import (
	"context"
	"fmt"
	"strconv"

	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Correct reports for each episode whether it solved its problem. A reward that reads gradings has them made here, and
// the evaluation records what follows from them. An answer whose grading breaks fails the stage.
func Correct(ctx context.Context, w *stage.Draft, in api.EvaluateInput, episodes []*rollout.Episode) ([]bool, error) {
	g, rows := grading.New(w.Recipe, in.Step), make([]schema.TrajectoryRow, len(episodes))
	if w.Recipe.Environment.Declaration().Interactive {
		g.Played = map[string]reward.Played{}
	}
	for i, e := range episodes {
		rows[i] = rollout.TrajectoryRow(e)
		rows[i].TrajectoryID = strconv.Itoa(i) // ids cannot number the episodes of every evaluation
		if g.Played != nil {
			g.Played[rows[i].TrajectoryID] = grading.PlayedBy(e)
		}
	}
	if g.Reads() {
		if err := w.Worker.Execution.Isolates(w.Recipe); err != nil {
			return nil, err
		}
		gradings, pairs := g.Questions(rows)
		graded, err := gradePairs(ctx, w, g.Tested(), pairs)
		if err != nil {
			return nil, err
		}
		for _, v := range graded {
			if v.Broken != nil {
				return nil, fmt.Errorf("grade an answer: %w", v.Broken)
			}
		}
		grading.Fill(gradings, graded)
		if err := g.Settle(gradings, rows); err != nil {
			return nil, err
		}
	}
	if g.Called() {
		problems := map[string]string{}
		for i, e := range episodes {
			rows[i].GroupID, problems[strconv.Itoa(i)] = strconv.Itoa(i), e.Task.Text
		}
		results, err := CallFunction{w.Worker}.called(ctx, w, in.Scope, g, rows, problems)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			if r.Excluded != nil {
				return nil, temporal.NewApplicationError("call the reward function: "+*r.Excluded, api.FailCode)
			}
		}
		if err := g.SettleResults(results, rows); err != nil {
			return nil, err
		}
	}
	out := make([]bool, len(rows))
	for i, row := range rows {
		correct, err := g.Correct(row)
		if err != nil {
			return nil, err
		}
		out[i] = correct
	}
	return out, nil
}
