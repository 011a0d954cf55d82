package grading

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/judge"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/schema"
)

// judgedGrader is the grader of a recipe whose reward asks a judge.
func judgedGrader(t *testing.T, recipe string, set ...string) *Grader {
	t.Helper()
	resolved, err := recipes.Resolve(
		recipe,
		"",
		append([]string{"judge={url: 'http://h/v1', model: m}"}, set...),
		nil,
		nil,
	)
	require.NoError(t, err)
	require.Empty(t, resolved.Recipe.Unset())
	return New(&resolved.Recipe, 1)
}

const longByJudge = "reward={name: prs_long, judge: server}"

// whole is a trajectory whose calls all ran.
func whole(answer, gold string) schema.TrajectoryRow {
	row := told(answer, gold)
	row.ToolErrors, row.Level = 0, 2
	return row
}

func TestWhatAJudgeIsAsked(t *testing.T) {
	gold := env.JoinGolds([]string{"Norwick", "Norwick, Livonia"})
	asked, failed, silent, gone := whole("Seldon", gold), told("Seldon", gold), whole("", gold), whole("Seldon", gold)
	silent.HasAnswer, silent.FinalAnswer = false, ""
	gone.Excluded = new("engine: lost")
	problems := map[string]string{asked.GroupID: "Where?"}
	g := judgedGrader(t, "searchqa", longByJudge, "judge.criteria=It rhymes.")
	rows, queries, err := g.Queries([]schema.TrajectoryRow{asked, failed, silent, gone}, problems)
	require.NoError(t, err)
	require.Equal(t, []reward.Query{{Criterion: reward.Grounded, Criteria: "It rhymes.", Question: "Where?",
		Response: "Seldon", References: []string{"Norwick", "Norwick, Livonia"}}}, queries)
	require.Equal(t, []schema.JudgementRow{{GroupID: asked.GroupID, TrajectoryID: asked.TrajectoryID,
		Criterion: "grounded", Answer: "Seldon", Gold: gold}}, rows)
	_, _, err = g.Queries([]schema.TrajectoryRow{asked}, nil)
	require.ErrorContains(t, err, "its group has no prompt")

	rows, queries = MatchQueries([]schema.TrajectoryRow{asked, failed, silent, gone}, problems)
	require.Len(t, rows, 2, "an evaluation asks about every answer")
	require.Equal(t, reward.Matching, queries[0].Criterion)
	require.Empty(t, queries[0].Criteria)
	rows, _, err = judgedGrader(t, "searchqa").Queries([]schema.TrajectoryRow{asked}, problems)
	require.NoError(t, err)
	require.Empty(t, rows, "exact match needs no judge")
}

// rowOf is the committed row of a judged trajectory.
func rowOf(t schema.TrajectoryRow, criterion, verdict, reply string) schema.JudgementRow {
	return schema.JudgementRow{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Criterion: criterion,
		Answer: t.FinalAnswer, Gold: t.Gold, PromptDigest: schema.Digest(nil), Model: "m", Reply: reply, Attempts: 1,
		Verdict: verdict}
}

func TestJudgementsMustFitTheirTrajectories(t *testing.T) {
	row := whole("Seldon", "Norwick")
	right := rowOf(row, "grounded", "match", "Match")
	change := func(f func(*schema.JudgementRow)) schema.JudgementRow { r := right; f(&r); return r }
	for name, c := range map[string]struct {
		rows []schema.JudgementRow
		want string
	}{
		"none": {nil, `trajectory 00001/0000/000 has no row in judgements, and its answer "Seldon" is to be judged`},
		"answer": {[]schema.JudgementRow{change(func(r *schema.JudgementRow) { r.Answer = "x" })}, "asks whether " +
			"\"x\""},
		"gold": {[]schema.JudgementRow{change(func(r *schema.JudgementRow) { r.Gold = "x" })}, "judgements of " +
			"its own"},
		"another": {[]schema.JudgementRow{change(func(r *schema.JudgementRow) { r.Criterion = "matching" })},
			"is matching"},
		"reply": {[]schema.JudgementRow{change(func(r *schema.JudgementRow) { r.Reply = "Match!" })}, "does not " +
			"say so"},
		"forged": {[]schema.JudgementRow{change(func(r *schema.JudgementRow) { r.Reply = "Mismatch" })}, "does " +
			"not say so"},
		"stray": {[]schema.JudgementRow{right,
			change(func(r *schema.JudgementRow) { r.TrajectoryID = "00001/0000/007" })},
			"judgements hold a row of trajectory 00001/0000/007"},
		"its own": {[]schema.JudgementRow{right}, ""},
	} {
		g, trajectories := judgedGrader(t, "searchqa", longByJudge), []schema.TrajectoryRow{row}
		err := g.SettleJudgements(c.rows, trajectories)
		if c.want != "" {
			var refused *refusal.Error
			require.ErrorAs(t, err, &refused, name)
			require.ErrorContains(t, err, c.want, name)
			continue
		}
		require.NoError(t, err, name)
		got, err := g.Score(trajectories[0])
		require.NoError(t, err)
		require.InDelta(t, 1+0.1+1, got.Reward, 1e-9, "process, format, judge; no n-gram is right")
		require.False(t, got.Success, "success stays exact match")
	}
	g, trajectories := judgedGrader(t, "searchqa", longByJudge), []schema.TrajectoryRow{row}
	require.NoError(t, g.SettleJudgements([]schema.JudgementRow{rowOf(row, "grounded", "mismatch", "Mismatch")},
		trajectories))
	got, err := g.Score(trajectories[0])
	require.NoError(t, err)
	require.InDelta(t, 1+0.1, got.Reward, 1e-9)
}

func TestBrokenJudgementsExclude(t *testing.T) {
	row := whole("Seldon", "Norwick")
	g, trajectories := judgedGrader(t, "searchqa", longByJudge), []schema.TrajectoryRow{row}
	rows, _, err := g.Queries(trajectories, map[string]string{row.GroupID: "Where?"})
	require.NoError(t, err)
	FillJudgements(rows, []judge.Answer{{PromptDigest: schema.Digest(nil), Reply: "I cannot", Attempts: 5,
		Broken: errors.New("the judge refuses\nto answer")}}, recipes.Judge{Model: "m"})
	require.NoError(t, rows[0].Validate())
	require.Equal(t, "judge: the judge refuses", *rows[0].Excluded)
	require.NoError(t, g.SettleJudgements(rows, trajectories))
	require.Equal(t, rows[0].Excluded, trajectories[0].Excluded)
}

// The deep-research reward takes F1, or a judge's verdict on the boxed answer.
func TestDeepResearchIsScored(t *testing.T) {
	row := whole("New York", "York City")
	row.Text = "<think>a</think><search>q</search>\n<result>\nr\n</result>\n" +
		"<python>1</python>\n<result>\n1\n</result>\n" +
		"<answer>it is \\boxed{New York}</answer>"
	malformed := row
	malformed.Text = "<answer>New York</answer>"
	byF1 := judgedGrader(t, "presets/aepo")
	got, err := byF1.Score(row)
	require.NoError(t, err)
	require.InDelta(t, 0.5+0.1, got.Reward, 1e-9, "one word of two")
	byJudge := judgedGrader(t, "presets/aepo", "reward.judged=true")
	trajectories := []schema.TrajectoryRow{row}
	require.NoError(t, byJudge.SettleJudgements([]schema.JudgementRow{rowOf(row, "matching", "match", "Match")},
		trajectories))
	got, err = byJudge.Score(row)
	require.NoError(t, err)
	require.InDelta(t, 1.1, got.Reward, 1e-9)
	for _, g := range []*Grader{byF1, byJudge} {
		got, err = g.Score(malformed)
		require.NoError(t, err)
		require.Equal(t, -1.0, got.Reward)
	}
	_, queries, err := byJudge.Queries([]schema.TrajectoryRow{malformed}, nil)
	require.NoError(t, err)
	require.Empty(t, queries, "no judge is asked about a response without the form")
}
