package evaluation_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/schema"
)

// rows makes two samples of each problem, of which the given number succeeds.
func rowsOf(successes ...int) []schema.EvaluationRow {
	var out []schema.EvaluationRow
	for p, n := range successes {
		for sample := range 2 {
			out = append(out, schema.EvaluationRow{ProblemID: fmt.Sprintf("p%03d", p), Level: int32(2 + p%2),
				Sample: int32(sample), Success: sample < n})
		}
	}
	return out
}

// Every problem improves by a half, whatever it was before: the paired interval has no width, though the rates vary
// from problem to problem.
func TestDifferPairsByProblem(t *testing.T) {
	d, ok := evaluation.Differ(rowsOf(0, 1, 0, 1), rowsOf(1, 2, 1, 2), -1, 1)
	require.True(t, ok)
	require.Equal(t, evaluation.Difference{Problems: 4, Before: 0.25, After: 0.75, Mean: 0.5, Low: 0.5, High: 0.5}, d)
}

// Of 200 problems 60 improve by one and 20 get worse by one: the interval is that of the normal approximation.
func TestDifferMatchesTheNormalApproximation(t *testing.T) {
	var before, after []int
	for p := range 200 {
		b, a := 0, 0
		switch {
		case p < 60:
			a = 2
		case p < 80:
			b = 2
		}
		before, after = append(before, b), append(after, a)
	}
	d, ok := evaluation.Differ(rowsOf(before...), rowsOf(after...), -1, 7)
	require.True(t, ok)
	require.InDelta(t, 0.2, d.Mean, 1e-9)
	half := 1.96 * math.Sqrt((0.4-0.04)/200)
	require.InDelta(t, 0.2-half, d.Low, 0.012)
	require.InDelta(t, 0.2+half, d.High, 0.012)
	again, _ := evaluation.Differ(rowsOf(before...), rowsOf(after...), -1, 7)
	require.Equal(t, d, again, "the same seed gives the same interval")
}

func TestDifferTakesCommonProblemsOfALevel(t *testing.T) {
	before, after := rowsOf(0, 1, 2, 1), rowsOf(2, 1, 2)
	d, ok := evaluation.Differ(before, after, 2, 1) // p000 and p002
	require.True(t, ok)
	require.Equal(t, 2, d.Problems)
	require.InDelta(t, 0.5, d.Mean, 1e-12)
	d, ok = evaluation.Differ(before, after, -1, 1)
	require.True(t, ok)
	require.Equal(t, 3, d.Problems, "p003 is only in one")
	greedy := slices.Clone(before)
	for i := range greedy {
		greedy[i].Greedy = true
	}
	_, ok = evaluation.Differ(greedy, after, -1, 1)
	require.False(t, ok, "greedy episodes do not count")
	_, ok = evaluation.Differ(before, after, 9, 1)
	require.False(t, ok)
}
