package grading

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/schema"
)

// told is a trajectory of three turns with two calls, one of them failed, and an answer.
func told(answer, gold string) schema.TrajectoryRow {
	n := func(x int32) *int32 { return &x }
	return schema.TrajectoryRow{
		GroupID: schema.GroupID(1, 0), TrajectoryID: schema.TrajectoryID(1, 0, 0), Turns: 3, ToolCalls: 2,
		ToolErrors: 1, AnswerTags: 1, Tokens: 90,
		Finish: "answered", FinalAnswer: answer, HasAnswer: true, Gold: gold, Text: `so</reason><answer>\boxed{` +
			answer + `}</answer>`,
		BegunCalls: n(2), ParsedCalls: n(2), ToolTurns: n(2), MalformedTurns: n(0), VoidTurns: n(0),
	}
}

func scoring(t *testing.T, set ...string) *recipes.Recipe {
	t.Helper()
	resolved, err := recipes.Resolve("quickstart", "", set, nil, nil)
	require.NoError(t, err)
	require.Empty(t, resolved.Recipe.Planned())
	return &resolved.Recipe
}

func TestRewards(t *testing.T) {
	clean := func(r *schema.TrajectoryRow) { r.ToolErrors = 0 }
	unwrapped := func(r *schema.TrajectoryRow) { r.MalformedTurns = new(int32(1)) }
	silent := func(r *schema.TrajectoryRow) { r.HasAnswer, r.FinalAnswer, r.Text = false, "", "so</reason>" }
	for name, c := range map[string]struct {
		set    string
		answer string
		change func(*schema.TrajectoryRow)
		want   float64
	}{
		"rstar2":                   {"{name: rstar2_outcome}", "7", nil, 1},
		"rstar2, wrong":            {"{name: rstar2_outcome}", "8", nil, 0},
		"spear":                    {"{name: spear}", "7", nil, 1 + 0.2 + 0.1},
		"spear, wrong":             {"{name: spear}", "8", unwrapped, -1 + 0.2},
		"spear, other constants":   {"{name: spear, tool_step: 0.3, format_bonus: 0.5}", "7", nil, 1 + 0.6 + 0.5},
		"spear, no terms":          {"{name: spear, tool_step: 0, format_bonus: 0}", "7", nil, 1},
		"spear_math":               {"{name: spear_math}", "8", nil, -1 + 0.2},
		"spear_math_qwen3":         {"{name: spear_math_qwen3}", "7", nil, 2},
		"spear_agent":              {"{name: spear_agent}", "7", unwrapped, 10 + 0.3 - 0.1},
		"retool, wrong":            {"{name: retool}", "8", nil, -1 + 0.1*4/2},
		"prs_short, a call failed": {"{name: prs_short}", "7", nil, -1 + 0.1},
		"prs_short":                {"{name: prs_short}", "7", clean, 1 + 0.1 + 1},
		"prs_short, no answer": {"{name: prs_short}", "", func(r *schema.TrajectoryRow) { clean(r); silent(r) },
			0.1},
		"prs_long":                    {"{name: prs_long}", "7", clean, 1 + 0.1 + 1 + 1},
		"prs_long, mismatch":          {"{name: prs_long}", "8", clean, 1 + 0.1},
		"prs_general":                 {"{name: prs_general}", "7", clean, 1 + 2*0.731058578630005},
		"prs_general, a gate is shut": {"{name: prs_general, judge_gate: 2}", "7", clean, 1 + 0.731058578630005},
		"exact_match":                 {"{name: exact_match}", "7", nil, 1},
		"exact_match, no answer":      {"{name: exact_match}", "", silent, 0},
		"f1":                          {"{name: f1}", "7 8", nil, 2. / 3},
		"dapo_strict":                 {"{name: dapo_strict}", "8", nil, -1},
		"arlarena":                    {"{name: arlarena}", "7", nil, 1},
		// 90 of 160 tokens
		"overlong": {"{name: rstar2_outcome, overlong: {buffer: 100, factor: 2}}", "7", nil, 1 - 2*30./100},
	} {
		row := told(c.answer, "7")
		if c.change != nil {
			c.change(&row)
		}
		g := New(scoring(t, "reward="+c.set), 1)
		require.NoError(t, g.check(row), name)
		require.NoError(t, FromRecord(g.reward.Name), name)
		got, err := g.Score(row)
		require.NoError(t, err, name)
		require.NoError(t, got.Validate(), name)
		require.InDelta(t, c.want, got.Reward, 1e-9, name)
		require.Equal(t, c.answer == "7", got.Success, name)
	}
}

func TestAnOverlongBufferFitsTheLimit(t *testing.T) {
	_, _, err := New(scoring(t, "reward={name: rstar2_outcome, overlong: {buffer: 1000}}"), 1).grade(told("7", "7"))
	require.EqualError(t, err, "reward.overlong.buffer must be at most the limit of tokens, got 1000 of 160")
}

// The weight of the tool term decreases with the steps of the run.
func TestTheToolTermFades(t *testing.T) {
	recipe := scoring(t, "reward={name: spear}", "schedule.mu_horizon=4")
	for step, mu := range map[int]float64{1: 0.853553390593274, 2: 0.5, 4: 0, 9: 0} {
		_, got, err := New(recipe, step).grade(told("7", "7"))
		require.NoError(t, err)
		require.InDelta(t, 1+mu*0.2+0.1, got, 1e-12, "step %d", step)
	}
}

// Trajectories of earlier versions do not record how their turns were written.
func TestMissingFactsAreRefused(t *testing.T) {
	row := told("7", "7")
	row.BegunCalls = nil
	require.ErrorContains(t, New(scoring(t, "reward={name: prs_short}"), 1).check(row),
		"reward.name: prs_short reads how each turn was written, which trajectory 00001/0000/000 does not say")
	require.NoError(t, New(scoring(t), 1).check(row))
	row.Excluded = new("engine: lost")
	require.NoError(t, New(scoring(t, "reward={name: prs_short}"), 1).check(row),
		"what is excluded is not scored")
}

// Every reward that the pipeline claims to build can be computed here.
func TestEveryBuiltRewardIsGradable(t *testing.T) {
	for _, p := range method.Pipeline() {
		if p.Slot != "reward.name" {
			continue
		}
		require.NoError(t, FromRecord(p.Choice))
		row := told("7", "7")
		row.SourceReward, row.Reference = new(0.5), new(true)
		g := &Grader{reward: recipes.Reward{Name: p.Choice}, limit: 160}
		if g.Called() { // its result is committed before
			g.results = map[string]reward.Result{row.TrajectoryID: {Score: 1, Success: true}}
		}
		_, _, err := g.grade(row)
		require.NoError(t, err, p.Choice)
	}
	_, _, err := (&Grader{reward: recipes.Reward{Name: "shallow"}}).grade(told("7", "7"))
	require.ErrorContains(t, err, `reward "shallow" is not implemented; there are rstar2_outcome, `)
	require.Error(t, FromRecord("shallow"))
}

func TestFactsFollowFromTheRow(t *testing.T) {
	f := facts(told("7", "7"))
	require.NoError(t, f.Validate())
	require.Equal(t, reward.Facts{Turns: 3, ToolTurns: 2, Calls: 2, ParsedCalls: 2, ExecutedCalls: 1, Answered: true},
		f)
}

// A box that a policy writes while it thinks is no answer, in whatever protocol and for every reward that reads texts.
func TestDraftsInReasoningScoreNothing(t *testing.T) {
	for _, c := range []struct{ set, text string }{
		{"reward={name: rstar2_outcome}", `<reason>maybe <answer>\boxed{7}</answer></reason>no idea<|im_end|>`},
		{"rollout.protocol=hermes", `<think>maybe \boxed{7}</think>no idea<|im_end|>`},
		{"rollout.protocol=hermes", `<think>maybe \boxed{7}`},
		{"rollout.protocol=tir", `maybe \boxed{7}</think>no idea<|im_end|>`},
		{"rollout.protocol=search", `<think>maybe <answer>7</answer></think>no idea<|im_end|>`},
		{"reward={name: arlarena}", `<reason>maybe \boxed{7}</reason>no idea<|im_end|>`},
	} {
		row := told("", "7")
		row.HasAnswer, row.FinalAnswer, row.Text = false, "", c.text
		got, err := New(scoring(t, c.set), 1).Score(row)
		require.NoError(t, err)
		require.False(t, got.Success, c.text)
		require.Zero(t, got.Outcome, c.text)
	}
}
