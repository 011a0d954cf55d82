package grading

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
)

// graderOf is the grader of a reward that asks for symbolic gradings.
func graderOf(name string) *Grader {
	return &Grader{reward: recipes.Reward{Name: name, Symbolic: true}}
}

func TestGradingsMustFitTheirTrajectories(t *testing.T) {
	first, second := told("x+1", "1+x"), told("7", "7")
	second.TrajectoryID = schema.TrajectoryID(1, 0, 1)
	row := schema.GradingRow{GroupID: first.GroupID, TrajectoryID: first.TrajectoryID, Answer: "x+1", Gold: "1+x",
		Verdict: schema.GradingEqual, Grader: "sympy 0"}
	stray := row
	stray.TrajectoryID = schema.TrajectoryID(1, 0, 7)
	other := row
	other.Answer = "x+2"
	for name, c := range map[string]struct {
		rows []schema.GradingRow
		want string
	}{
		"none": {nil,
			`trajectory 00001/0000/000 has no row in gradings, and its answer "x+1" is to be compared with "1+x"`},
		"another": {[]schema.GradingRow{other},
			`trajectory 00001/0000/000: its row in gradings compares "x+2" with "1+x", and its answer "x+1"`},
		"stray": {[]schema.GradingRow{row, stray},
			"gradings hold a row of trajectory 00001/0000/007, which the shard's trajectories do not have"},
		"its own": {[]schema.GradingRow{row}, ""},
	} {
		g := graderOf(recipes.RStar2Outcome)
		trajectories := []schema.TrajectoryRow{first, second}
		err := g.Settle(c.rows, trajectories)
		if c.want != "" {
			require.ErrorContains(t, err, c.want, name)
			continue
		}
		require.NoError(t, err, name)
		for i, want := range []string{"symbolic", "exact"} {
			got, err := g.Score(trajectories[i])
			require.NoError(t, err)
			require.Equal(t, want, got.Verdict)
			require.True(t, got.Success)
			require.Equal(t, 1.0, got.Reward)
		}
	}
	g := graderOf(recipes.RStar2Outcome)
	why := "grading: timeout_cpu"
	row.Verdict, row.Grader, row.Excluded = "", "", &why
	trajectories := []schema.TrajectoryRow{first, second}
	require.NoError(t, g.Settle([]schema.GradingRow{row}, trajectories))
	require.Equal(t, &why, trajectories[0].Excluded)
	require.Nil(t, trajectories[1].Excluded)
}

// Every reward that reads the field counts an equal verdict as a success.
func TestSymbolicVerdictsReachEveryReward(t *testing.T) {
	for name, want := range map[string]float64{
		recipes.RStar2Outcome: 1, "arlarena": 1, "spear": 1, "spear_math": 1,
		"spear_math_qwen3": 1, "retool": 1,
	} {
		g := graderOf(name)
		row := told("x+1", "1+x")
		q, open := g.question(row)
		require.True(t, open, name)
		require.Equal(t, "x+1", q.Answer, name)
		wrong, err := g.Score(row)
		require.NoError(t, err, name)
		require.Equal(t, "wrong", wrong.Verdict, name)
		g.equal = map[string]bool{row.TrajectoryID: true}
		right, err := g.Score(row)
		require.NoError(t, err, name)
		require.Equal(t, "symbolic", right.Verdict, name)
		require.Equal(t, want, right.Outcome, name)
		require.Greater(t, right.Reward, wrong.Reward, name)
	}
}

func TestQuestionsAreOfWholeTrajectoriesAlone(t *testing.T) {
	g := graderOf(recipes.RStar2Outcome)
	broken := told("x+1", "1+x")
	broken.Excluded = new("engine: lost")
	silent := told("x+1", "1+x")
	silent.Text = "no box"
	rows, pairs := g.Questions([]schema.TrajectoryRow{broken, silent, told("8", "7"), told("2+5", "7"),
		told("x+1", "1+x"), told("x+1", "1+x")})
	require.Len(t, rows, 2, "a written number is wanted where the gold is one")
	require.Len(t, pairs, 1)
}

// Programs are always asked about, and only a committed verdict makes one right.
func TestProgramsAreSettledByTheirTests(t *testing.T) {
	program := told("def f(): pass", `{"prompt":"p"}`)
	silent := told("", `{"prompt":"p"}`)
	silent.TrajectoryID, silent.HasAnswer = schema.TrajectoryID(1, 0, 1), false
	g := &Grader{reward: recipes.Reward{Name: "unit_tests"}}
	require.True(t, g.Reads())
	require.True(t, g.Tested())
	require.False(t, graderOf(recipes.RStar2Outcome).Tested())
	rows, pairs := g.Questions([]schema.TrajectoryRow{program, silent})
	require.Len(t, rows, 1)
	require.Equal(t, []symbolic.Pair{{Answer: "def f(): pass", Gold: `{"prompt":"p"}`}}, pairs)

	for verdict, want := range map[symbolic.Verdict]float64{symbolic.Equal: 1, symbolic.Different: 0,
		symbolic.Unreadable: 0} {
		Fill(rows, map[symbolic.Pair]symbolic.Graded{pairs[0]: {Grade: symbolic.Grade{Verdict: verdict,
			Grader: "tests"}}})
		require.NoError(t, rows[0].Validate())
		require.NoError(t, g.Settle(rows, []schema.TrajectoryRow{program, silent}))
		got, err := g.Score(program)
		require.NoError(t, err)
		require.Equal(t, want, got.Reward)
		require.Equal(t, want == 1, got.Success)
		got, err = g.Score(silent)
		require.NoError(t, err)
		require.Equal(t, []any{0.0, "no_answer"}, []any{got.Reward, got.Verdict})
	}
	Fill(rows, map[symbolic.Pair]symbolic.Graded{pairs[0]: {Broken: errors.New("lost")}})
	trajectories := []schema.TrajectoryRow{program}
	require.NoError(t, g.Settle(rows, trajectories))
	require.Equal(t, "grading: lost", *trajectories[0].Excluded, "breakage is no score")
}
