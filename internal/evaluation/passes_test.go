package evaluation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// solvedRows makes n samples of a problem of which the first c are solved.
func solvedRows(problem string, n, c int) []schema.EvaluationRow {
	var out []schema.EvaluationRow
	for i := range n {
		out = append(out, schema.EvaluationRow{ProblemID: problem, Sample: int32(i), Success: i < c})
	}
	return out
}

// By hand: 2 of 4 solved gives pass@2 = 1 − C(2,2)/C(4,2) = 5/6 and pass^2 = C(2,2)/C(4,2) = 1/6; 4 of 4 gives 1 and 1.
func TestPassesByHand(t *testing.T) {
	rows := append(solvedRows("a", 4, 2), solvedRows("b", 4, 4)...)
	rows = append(rows, schema.EvaluationRow{ProblemID: "a", Greedy: true, Success: true}) // does not count
	p, err := PassesOf(rows, 1)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 4}, p.K)
	for i, want := range []struct{ at, of float64 }{{0.75, 0.75}, {(5./6 + 1) / 2, (1./6 + 1) / 2}, {1, 0.5}} {
		require.InDelta(t, want.at, p.PassAt[i].Success, 1e-12, "pass@%d", p.K[i])
		require.InDelta(t, want.of, p.PassOf[i].Success, 1e-12, "pass^%d", p.K[i])
		require.Equal(t, 2, p.PassAt[i].N)
		require.LessOrEqual(t, p.PassOf[i].CILow, p.PassOf[i].Success)
		require.GreaterOrEqual(t, p.PassOf[i].CIHigh, p.PassOf[i].Success)
	}
}

func TestPassesEndWithTheFewestSamples(t *testing.T) {
	p, err := PassesOf(append(solvedRows("a", 6, 1), solvedRows("b", 5, 0)...), 1)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 4, 5}, p.K)
	none, err := PassesOf(nil, 1)
	require.NoError(t, err)
	require.Empty(t, none.K)
}

// By hand: "red fox" against "the fox" and "red fox": the first sample matches, the second shares one of two words.
func TestWordRatesCountEachProblemOnce(t *testing.T) {
	rows := []schema.EvaluationRow{
		{ProblemID: "a", Gold: "red fox", FinalAnswer: "red fox"},
		{ProblemID: "a", Sample: 1, Gold: "red fox", FinalAnswer: "grey fox"},
		{ProblemID: "b", Gold: "owl"},
	}
	exact, f1 := WordRates(rows, 1)
	require.InDelta(t, 0.25, exact.Success, 1e-12)
	require.InDelta(t, 0.375, f1.Success, 1e-12)
	require.Equal(t, 2, f1.N)
}
