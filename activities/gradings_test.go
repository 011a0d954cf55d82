package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// graderOf is the grader of a reward that asks for symbolic gradings.
func graderOf(name string) grader { return grader{reward: recipes.Reward{Name: name, Symbolic: true}} }

func TestGradingsMustFitTheirTrajectories(t *testing.T) {
	first, second := told("x+1", "1+x"), told("7", "7")
	second.TrajectoryID = schema.TrajectoryID(1, 0, 1)
	row := schema.GradingRow{GroupID: first.GroupID, TrajectoryID: first.TrajectoryID, Answer: "x+1", Gold: "1+x", Verdict: schema.GradingEqual, Grader: "sympy 0"}
	stray := row
	stray.TrajectoryID = schema.TrajectoryID(1, 0, 7)
	other := row
	other.Answer = "x+2"
	for name, c := range map[string]struct {
		rows []schema.GradingRow
		want string
	}{
		"none":    {nil, `trajectory 00001/0000/000 has no row in gradings, and its answer "x+1" is to be held against "1+x"`},
		"another": {[]schema.GradingRow{other}, `trajectory 00001/0000/000: its row in gradings holds "x+2" against "1+x", and its answer "x+1"`},
		"stray":   {[]schema.GradingRow{row, stray}, "gradings hold a row of trajectory 00001/0000/007, which the shard's trajectories do not have"},
		"its own": {[]schema.GradingRow{row}, ""},
	} {
		g := graderOf(recipes.RStar2Outcome)
		trajectories := []schema.TrajectoryRow{first, second}
		err := g.take(c.rows, trajectories)
		if c.want != "" {
			require.ErrorContains(t, err, c.want, name)
			continue
		}
		require.NoError(t, err, name)
		for i, want := range []string{"symbolic", "exact"} {
			got, err := g.score(trajectories[i])
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
	require.NoError(t, g.take([]schema.GradingRow{row}, trajectories))
	require.Equal(t, &why, trajectories[0].Excluded)
	require.Nil(t, trajectories[1].Excluded)
}

// Every reward that takes the field turns an equal verdict into its own success.
func TestSymbolicVerdictsReachEveryReward(t *testing.T) {
	for name, want := range map[string]float64{
		recipes.RStar2Outcome: 1, recipes.MathAnswer: 1, arlarena: 1, "spear": 1, "spear_math": 1, "spear_math_qwen3": 1, "retool": 1,
	} {
		g := graderOf(name)
		row := told("x+1", "1+x")
		q, open := g.question(row)
		require.True(t, open, name)
		require.Equal(t, "x+1", q.Answer, name)
		wrong, err := g.score(row)
		require.NoError(t, err, name)
		require.Equal(t, "wrong", wrong.Verdict, name)
		g.equal = map[string]bool{row.TrajectoryID: true}
		right, err := g.score(row)
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
	rows, pairs := g.questions([]schema.TrajectoryRow{broken, silent, told("8", "7"), told("2+5", "7"), told("x+1", "1+x"), told("x+1", "1+x")})
	require.Len(t, rows, 2, "a written number is wanted where the gold is one")
	require.Len(t, pairs, 1)
}
