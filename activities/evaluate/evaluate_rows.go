package evaluate

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// heldOut holds what an evaluation records: a row for each episode, and the episodes themselves in the tables of a
// rollout. A problem of the held-out set is a group.
type heldOut struct {
	rows         []schema.EvaluationRow
	prompts      []schema.EvaluationPromptRow
	turns        []schema.EvaluationTurnRow
	calls        []schema.EvaluationCallRow
	transitions  []schema.EvaluationTransitionRow
	trajectories []schema.EvaluationTrajectoryRow
	judgements   []schema.EvaluationJudgementRow // nil if no judge was asked
	// whole is false if ids cannot number the episodes. Then only the rows of evaluations are recorded.
	whole bool
	// debates are the proposals of agents, where answers or actions are debated.
	debates []schema.EvaluationDebateRow
	// excluded counts the episodes that broke.
	excluded int
}

// fits reports whether ids can number the episodes of an evaluation.
func fits(problems, samples int) bool {
	return problems <= schema.MaxGroups && samples <= schema.MaxSamples
}

// add takes the finished episodes of one pass, in the order of problems and samples. first is the number of the
// problems' first sample in the pass.
func (h *heldOut) add(episodes []*rollout.Episode, first int) error {
	if !h.whole {
		return nil
	}
	for _, e := range episodes {
		e.TrajectoryID = schema.TrajectoryID(e.Step, e.Group, first+e.Sample)
		if first+e.Sample == 0 {
			h.prompts = append(h.prompts, promptOf(e))
		}
		h.trajectories = append(h.trajectories, schema.EvaluationTrajectoryRow(rollout.TrajectoryRow(e)))
	}
	for turn := 0; ; turn++ {
		rows := rollout.TurnRows(episodes, turn)
		if len(rows) == 0 {
			return nil
		}
		for _, r := range rows {
			h.turns = append(h.turns, schema.EvaluationTurnRow(r))
		}
		for _, r := range rollout.ToolCallRows(episodes, turn) {
			h.calls = append(h.calls, schema.EvaluationCallRow(r))
		}
		moves, err := rollout.TransitionRows(episodes, turn)
		if err != nil {
			return err
		}
		for _, r := range moves {
			h.transitions = append(h.transitions, schema.EvaluationTransitionRow(r))
		}
	}
}

// promptOf returns the row of an episode's problem. The prompt is the context of the first turn.
func promptOf(e *rollout.Episode) schema.EvaluationPromptRow {
	row := schema.EvaluationPromptRow{
		GroupID: e.GroupID, ProblemID: e.Task.ID, Level: int32(e.Task.Level), Problem: e.Task.Text,
		Answer: e.Task.Answer, Expression: e.Task.Spec, TokenIDs: e.Context,
	}
	if e.Task.Part != "" {
		row.Part = &e.Task.Part
	}
	if len(e.Turns) > 0 {
		row.TokenIDs = e.Turns[0].Context
	}
	return row
}

// put commits the tables. An environment has tool calls or transitions; the other table is left out.
func (h *heldOut) put(ctx context.Context, w *stage.Draft) error {
	if err := stage.Put(ctx, w, h.rows); err != nil || !h.whole {
		return err
	}
	if err := stage.Put(ctx, w, h.prompts); err != nil {
		return err
	}
	if err := stage.Put(ctx, w, h.turns); err != nil {
		return err
	}
	if w.Recipe.Evaluation.Debate != nil {
		if err := stage.Put(ctx, w, h.debates); err != nil {
			return err
		}
	}
	if w.Recipe.Environment.Declaration().Interactive {
		if err := stage.Put(ctx, w, h.transitions); err != nil {
			return err
		}
	} else if err := stage.Put(ctx, w, h.calls); err != nil {
		return err
	}
	if err := stage.Put(ctx, w, h.trajectories); err != nil || h.judgements == nil {
		return err
	}
	return stage.Put(ctx, w, h.judgements)
}

// row returns the row of one episode, after add.
func (h *heldOut) row(in api.EvaluateInput, e *rollout.Episode, sample int, greedy, correct bool) schema.EvaluationRow {
	t := rollout.TrajectoryRow(e)
	row := schema.EvaluationRow{
		Tag: in.Tag, ProblemID: t.ProblemID, Level: t.Level, Sample: int32(sample), Greedy: greedy,
		Success: correct, ToolCalls: t.ToolCalls, ToolErrors: t.ToolErrors, Turns: t.Turns,
		Tokens: t.Tokens, ResponseTokens: &t.ResponseTokens,
		FinalAnswer: t.FinalAnswer, Gold: t.Gold, PolicyVersion: in.Policy.Digest,
	}
	if h.whole {
		row.TrajectoryID = &t.TrajectoryID
	}
	if e.Task.Part != "" {
		row.Part = &e.Task.Part
	}
	return row
}

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
