package evaluation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

func TestRateDoesNotDependOnTheOrderOfProblems(t *testing.T) {
	t.Parallel()
	a := evaluation.Rate([]float64{0, 0.25, 1, 0.5, 0.5, 1}, 7, "all")
	b := evaluation.Rate([]float64{1, 0.5, 0, 1, 0.25, 0.5}, 7, "all")
	require.Equal(t, a, b)
	require.Less(t, a.CILow, a.Success)
	require.Greater(t, a.CIHigh, a.Success)
	odd := []float64{0.013, 0.171, 0.237, 0.349, 0.411, 0.503, 0.613, 0.727, 0.839, 0.953}
	require.NotEqual(t, evaluation.Rate(odd, 7, "all"), evaluation.Rate(odd, 8, "all"), "the seed decides the draws")
}

// At shares of 0 and 1 resampling shows no spread; no problem would ever fail or succeed.
func TestRateOfAllOrNoneIsWilsons(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0, 1} {
		low, high := diagnose.Wilson(share, 4)
		require.Equal(t, api.Rate{Success: share, CILow: low, CIHigh: high, N: 4},
			evaluation.Rate([]float64{share, share, share, share}, 7, "all"))
	}
	require.Equal(t, api.Rate{}, evaluation.Rate(nil, 7, "all"))
}

func TestNoDataIsNotZero(t *testing.T) {
	t.Parallel()
	row := schema.EvaluationRow{ProblemID: "p", Level: 2, Success: true}
	none := evaluation.Summarise([]schema.EvaluationRow{row}, 1)
	require.Equal(t, "–", none.GreedyWords(), "there was no greedy episode")
	require.Equal(t, "–", none.ToolErrorWords(), "no positive trajectory called a tool")
	require.Equal(t, "–", evaluation.Summarise(nil, 1).Rate.String())

	row.ToolCalls = 4
	greedy := schema.EvaluationRow{ProblemID: "p", Level: 2, Greedy: true}
	some := evaluation.Summarise([]schema.EvaluationRow{row, greedy}, 1)
	require.Equal(t, "0.0%", some.GreedyWords())
	require.Equal(t, "0.0%", some.ToolErrorWords())
	require.Equal(t, "100.0% [20.7, 100.0]", some.Rate.String())
}
