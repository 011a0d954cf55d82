package evaluation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/schema"
)

// Each problem counts once, however many samples it has; greedy episodes do not count.
func TestScoresByProblem(t *testing.T) {
	rows := []schema.EvaluationRow{
		{ProblemID: "a", Score: new(1.0)}, {ProblemID: "a", Sample: 1, Score: new(0.0)},
		{ProblemID: "b", Score: new(0.25)}, {ProblemID: "b", Greedy: true, Score: new(1.0)},
	}
	mean, ok := evaluation.Score(rows)
	require.True(t, ok)
	require.InDelta(t, 1.25/3, mean, 1e-12)
	rate, ok := evaluation.ScoreRate(rows, 1)
	require.True(t, ok)
	require.InDelta(t, (0.5+0.25)/2, rate.Success, 1e-12)
	require.Equal(t, 2, rate.N)
	require.LessOrEqual(t, rate.CILow, rate.CIHigh)
	_, ok = evaluation.ScoreRate(rows[3:], 1)
	require.False(t, ok)
}

func TestSuccessByTypeOfTask(t *testing.T) {
	rows := rowsOf(2, 1, 0)
	for i := range rows {
		rows[i].TaskType = new(map[bool]string{true: "heat", false: "cool"}[rows[i].ProblemID == "p000"])
	}
	got := evaluation.Summarise(rows, 1)
	require.Len(t, got.ByType, 2)
	require.InDelta(t, 1.0, got.ByType["heat"].Success, 1e-12)
	require.InDelta(t, 0.25, got.ByType["cool"].Success, 1e-12)
	require.Equal(t, 2, got.ByType["cool"].N)
	require.Nil(t, evaluation.Summarise(rowsOf(1), 1).ByType, "no type is known")
}
