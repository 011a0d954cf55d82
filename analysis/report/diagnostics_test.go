package report

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
)

// drawn renders a figure of data.
func drawn(d data, declared figure) Figure {
	f, _ := declared.render(d)
	return f
}

// asked is data with one answer.
func asked(name string, columns string, rows ...[]any) data {
	return data{questions: map[string]Question{},
		answers: map[string]answer{name: {sql.Result{Columns: strings.Fields(columns), Rows: rows}}}}
}

func TestStabilityOfTheEnd(t *testing.T) {
	var rows [][]any
	for _, rate := range []float64{0, 0, 0, 0, 0, 0.1, 0.9, 0.2, 0.5, 0.7} {
		rows = append(rows, []any{rate})
	}
	require.Equal(t, [][]string{{"2", "60.0%", "0.01", "no"}},
		drawn(asked("rewards", "success", rows...), stability).Table.Rows)
	require.Contains(t, drawn(asked("rewards", "success", rows[:5]...), stability).Empty, "5 are done")
	settled := asked("rewards", "success", append(rows, []any{0.65}, []any{0.7}, []any{0.7})...)
	require.Equal(t, [][]string{
		{"A ", "2", "60.0%", "0.01", "no"}, {"B ", "3", "68.3%", "0.000556", "yes"}, {"all", "", "", "", "1 of 2"},
	}, stabilities([]data{asked("rewards", "success", rows...), settled}).Rows)
}

func TestPassAtKOfEvaluations(t *testing.T) {
	// Two problems of 4 samples: 1 and 4 right. pass@1 = (1/4 + 1)/2, pass@2 = (1/2 + 1)/2.
	d := asked("evaluations", "step tag level problem_id success samples",
		[]any{nil, "warm_start", int32(1), "p", 0.0, int64(4)}, []any{nil, "warm_start", int32(1), "q", 0.0, int64(4)},
		[]any{int32(9), "final", int32(1), "p", 0.25, int64(4)}, []any{int32(9), "final", int32(1), "q", 1.0, int64(4)})
	f := drawn(d, passAtK)
	require.Equal(t, [][]string{{"step 0", "2", "0.0%"}, {"step 9", "2", "62.5%"}}, f.Table.Rows)
	require.Contains(t, f.SVG, "step 9: 62.5%")
	require.Contains(t, f.SVG, "step 9: 75.0%")
}

func TestTransitionsAreDrawn(t *testing.T) {
	d := asked("call_outcomes", "success labels n", []any{int32(1), "py: ok\x1fpy: ok\x1fpy: bad", int64(3)},
		[]any{int32(0), "py: bad", int64(2)}, []any{int32(0), "rare\x1frare", int64(1)})
	f := drawn(d, allCalls)
	require.Empty(t, f.Empty)
	require.Contains(t, f.SVG, "<title>py: ok → py: ok: 3</title>")
	require.Contains(t, f.SVG, "<title>py: ok → py: bad: 3</title>")
	require.NotContains(t, f.SVG, "rare")
	require.Contains(t, f.Note, "50.0% of the transitions")
	require.Contains(t, drawn(d, callsOfFailures).Empty, "has two calls")
	require.Contains(t, drawn(asked("call_outcomes", "success labels n"), allCalls).Empty, "called a tool")
}

// Two trajectories of two tokens each: the trainer finds the first likelier than the sampler did, the second less.
func TestDiagnosesOfTokens(t *testing.T) {
	row := func(id string, old, advantage, entropy float32) analysis.TokenRow {
		return analysis.TokenRow{
			GroupID: "g", TrajectoryID: id, Mask: []int32{0, 1, 1}, LogProbs: []float32{0, -1, -1},
			Entropies: []float32{0, entropy, entropy}, OldLogProbs: []float32{0, old, old},
			ReferenceLogProbs: []float32{0, -1, -1}, Advantages: []float32{0, advantage, advantage},
			Anchors: []string{"start", id},
		}
	}
	d := data{tokens: []stepTokens{{7, []analysis.TokenRow{row("a", -0.5, 1, 2), row("b", -1.5, -1, 1)}}}}
	models := drawn(d, modelsApart)
	// k1: mean of ±0.5 is 0; k3: mean of e^∓0.5 ± 0.5 − 1; ratios e^±0.5
	require.Equal(t, []string{"7", "0", plainNumber((math.Exp(-0.5) + math.Exp(0.5) - 2) / 2), "0", "0.607 to 1.65",
		"0.5", "0.5", "0.5", "100.0%"},
		models.Table.Rows[0])

	eight := drawn(d, eightGroups)
	require.Len(t, eight.Table.Rows, 8)
	require.Equal(t, []string{"A+|IS>1|H+", "1", "1.65",
		percent((math.Exp(-0.5) - 0.5) / (math.Exp(-0.5) + math.Exp(0.5) - 2))}, eight.Table.Rows[0])
	require.Equal(t, "A-|IS<=1|H-", eight.Table.Rows[7][0])
	require.Equal(t, "1", eight.Table.Rows[7][1])

	anchors := drawn(d, anchorGroups)
	require.Contains(t, anchors.Note, "3 groups hold 4 turns; 66.7% of the groups have a single turn. Computed from "+
		"the tokens of 1 steps")

	d.tokens[0].rows[0].Advantages = nil
	d.tokens[0].rows[1].ReferenceLogProbs = nil
	require.Contains(t, drawn(d, eightGroups).Empty, "It needs")
	require.NotEmpty(t, drawn(d, modelsApart).Table.Rows)
	d.tokens[0].rows[0].LogProbs[1] = 3
	require.Contains(t, drawn(d, modelsApart).Empty, "cannot be used")
}

func TestSpreadOfSteps(t *testing.T) {
	require.Equal(t, []int{3, 2, 1}, spread([]int{1, 2, 3}, 5))
	require.Empty(t, spread(nil, 5))
	many := make([]int, 98)
	for i := range many {
		many[i] = i + 1
	}
	require.Equal(t, []int{98, 1, 25, 49, 73}, spread(many, 5))
}
