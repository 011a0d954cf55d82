package evaluate

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// judgeable refuses an evaluation whose judgements could not name its episodes.
func (h *heldOut) judgeable(recipe *recipes.Recipe) error {
	if h.whole || !recipe.Evaluation.Judged {
		return nil
	}
	return badinput.Errorf("evaluation.judged: a record of judgements has room for %d problems of %d "+
		"samples", schema.MaxGroups, schema.MaxSamples)
}

// judge asks the judge about the answers of all episodes, if the recipe wants that. An episode without an answer is no
// match, and one on which the judge gives no verdict has none.
func judge(ctx context.Context, w *stage.Draft, in api.EvaluateInput, h *heldOut) error {
	if !w.Recipe.Evaluation.Judged {
		return nil
	}
	problems := map[string]string{}
	for _, p := range h.prompts {
		problems[p.GroupID] = p.Problem
	}
	counts := map[string]bool{} // of the episodes of a debate only the one that it decided on
	for _, r := range h.rows {
		counts[*r.TrajectoryID] = true
	}
	var trajectories []schema.TrajectoryRow
	for _, t := range h.trajectories {
		if counts[t.TrajectoryID] {
			trajectories = append(trajectories, schema.TrajectoryRow(t))
		}
	}
	rows, queries := grading.MatchQueries(trajectories, problems)
	if err := verdict.Judged(ctx, w, in.Run, rows, queries); err != nil {
		return err
	}
	verdicts := map[string]*bool{}
	for _, t := range trajectories {
		if t.Excluded == nil {
			verdicts[t.TrajectoryID] = new(false)
		}
	}
	for _, r := range rows {
		verdicts[r.TrajectoryID] = nil
		if r.Excluded == nil {
			verdicts[r.TrajectoryID] = new(r.Verdict == schema.JudgementMatch)
		}
		h.judgements = append(h.judgements, schema.EvaluationJudgementRow(r))
	}
	for i := range h.rows {
		h.rows[i].Judged = verdicts[*h.rows[i].TrajectoryID]
	}
	return nil
}
