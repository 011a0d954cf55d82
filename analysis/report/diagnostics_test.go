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

func TestGroupsAreJoinedByStep(t *testing.T) {
	d := asked("group_rewards", "step group_id reward kept n",
		[]any{int32(1), "a", 0.0, int32(0), int64(2)}, []any{int32(1), "a", 1.0, int32(1), int64(2)},
		[]any{int32(1), "b", 1.0, int32(1), int64(3)},
		[]any{int32(2), "b", 0.0, int32(0), int64(4)})
	steps, groups := groupsOf(d.answers["group_rewards"])
	require.Equal(t, []float64{1, 2}, steps)
	require.Len(t, groups[0], 2)
	require.Equal(t, []float64{0, 0, 1, 1}, groups[0][0].Rewards)
	require.Equal(t, []float64{1, 1}, groups[0][0].Kept)
	require.Equal(t, []float64{0, 0, 0, 0}, groups[1][0].Rewards)
	require.Empty(t, groups[1][0].Kept)
	f := drawn(d, zeroAdvantage)
	require.Empty(t, f.Empty)
	require.Contains(t, f.SVG, "always solved: 50.0%")
	require.Contains(t, f.SVG, "never solved: 100.0%")
}

func TestStabilityOfTheEnd(t *testing.T) {
	var rows [][]any
	for _, rate := range []float64{0, 0, 0, 0, 0, 0.1, 0.9, 0.2, 0.5, 0.7} {
		rows = append(rows, []any{rate})
	}
	require.Equal(t, [][]string{{"2", "60.0%", "0.01"}},
		drawn(asked("rewards", "success", rows...), stability).Table.Rows)
	require.Contains(t, drawn(asked("rewards", "success", rows[:5]...), stability).Empty, "5 are done")
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

func TestToolErrorsByKind(t *testing.T) {
	const columns = "step reward calls unread timeouts failed n"
	withShares := func(d data, shares ...[]any) data {
		d.answers["tool_errors"] = answer{sql.Result{Columns: []string{"step", "positive", "negative"}, Rows: shares}}
		return d
	}
	// 10 calls in positive trajectories: one not readable, two late, one that fails as it runs. In step 2 only a
	// trajectory without reward calls a tool.
	f := drawn(withShares(asked("tool_use", columns,
		[]any{int32(1), 1.0, int64(5), int64(0), int64(1), int64(1), int64(1)},
		[]any{int32(1), 1.0, int64(5), int64(1), int64(1), int64(3), int64(1)},
		[]any{int32(1), 0.0, int64(7), int64(7), int64(0), int64(7), int64(1)},
		[]any{int32(1), 1.0, int64(0), int64(0), int64(0), int64(0), int64(2)},
		[]any{int32(2), 0.0, int64(2), int64(0), int64(0), int64(1), int64(1)},
	), []any{int32(1), 0.4, 1.0}, []any{int32(2), nil, 0.5}), toolErrors)
	require.Empty(t, f.Empty)
	for _, part := range []string{"failed: 10.0%", "not parsed: 10.0%", "out of time: 20.0%",
		"trajectories affected: 100.0%", "calls where the reward is ≤ 0: 50.0%"} {
		require.Contains(t, f.SVG, part)
	}
	require.NotContains(t, f.SVG, "failed: 0.0%", "no call is no share of failed calls")
	broken := asked("tool_use", columns, []any{int32(1), 1.0, int64(1), int64(0), int64(0), int64(2), int64(1)})
	require.Contains(t, drawn(withShares(broken), toolErrors).Empty, "cannot be used")
	idle := asked("tool_use", columns, []any{int32(1), 1.0, int64(0), int64(0), int64(0), int64(0), int64(1)})
	require.Contains(t, drawn(withShares(idle, []any{int32(1), nil, nil}), toolErrors).Empty, "called a tool")
}

func TestEffortAndValidity(t *testing.T) {
	d := asked("effort", "step tool_calls turns response_tokens truncated n",
		[]any{int32(1), int32(2), int32(3), int32(10), int32(1), int64(1)},
		[]any{int32(1), int32(0), int32(1), int32(5), int32(0), int64(3)})
	of, err := efforts(d)
	require.NoError(t, err)
	require.InDelta(t, 0.5, of.reports[0].Calls.Mean, 0)
	require.InDelta(t, 1.5, of.reports[0].Turns.Mean, 0)
	require.Contains(t, drawn(d, truncation).SVG, "25.0%")

	// 2 trajectories of 2 turns, one of them malformed and void; 1 trajectory of 1 good turn.
	v := asked("validity", "step turns malformed_turns void_turns n",
		[]any{int32(1), int32(2), int32(1), int32(0), int64(2)},
		[]any{int32(1), int32(1), int32(0), int32(0), int64(1)})
	f := drawn(v, validity)
	for _, part := range []string{"format, turns: 60.0%", "format, whole trajectories: 33.3%",
		"action, turns: 100.0%"} {
		require.Contains(t, f.SVG, part)
	}
}

func TestTransitionsAreDrawn(t *testing.T) {
	d := asked("sequences", "labels n", []any{"py: ok\x1fpy: ok\x1fpy: bad", int64(3)}, []any{"py: bad", int64(2)},
		[]any{"rare\x1frare", int64(1)})
	f := drawn(d, transitions)
	require.Empty(t, f.Empty)
	require.Contains(t, f.SVG, "<title>py: ok → py: ok: 3</title>")
	require.Contains(t, f.SVG, "<title>py: ok → py: bad: 3</title>")
	require.NotContains(t, f.SVG, "rare")
	require.Contains(t, f.Note, "50.0% of the transitions")
	require.Contains(t, drawn(asked("sequences", "labels n", []any{"py: ok", int64(9)}), transitions).Empty, "twice")
	require.Contains(t, drawn(asked("sequences", "labels n"), transitions).Empty, "called a tool")
}

func TestLoadOfTheTools(t *testing.T) {
	// One call waits for a second and runs for one, another runs for two at the same time: in 2 seconds half a call
	// waits on average.
	d := asked("tool_load", "step waited started finished", []any{int32(1), 0.0, 1000.0, 1002.0},
		[]any{int32(1), 1.0, 1001.0, 1002.0})
	f := drawn(d, toolLoad)
	require.Equal(t, []string{"2", "2000.0 ms", "2000.0 ms", "2000.0 ms", "2000.0 ms", "500.0 ms", "2"},
		f.Table.Rows[0])
	require.Contains(t, f.SVG, "waiting: 0.5")
	require.Contains(t, f.SVG, "waiting or running: 2")
}

func TestWhatVSPODrew(t *testing.T) {
	d := asked("value_scores", "step group_id score copies weight",
		[]any{int32(1), "a", 0.25, int32(3), 1.5}, []any{int32(1), "b", 0.0, int32(0), 0.0},
		[]any{int32(1), "c", 0.0, int32(0), 0.0}, []any{int32(1), "d", 0.25, int32(1), 1.0})
	f := drawn(d, vspoDraws)
	require.Equal(t, [][]string{{"0", "2"}, {"1", "1"}, {"3", "1"}}, f.Table.Rows)
	require.Contains(t, f.SVG, "replaced: 0.5")
}

func TestTheBufferByItsMedian(t *testing.T) {
	d := asked("buffer", "step p50 queue collected gain n",
		[]any{int32(4), 0.5, int64(8), int32(2), -0.5, int64(1)},
		[]any{int32(4), 0.5, int64(8), int32(3), 0.5, int64(3)},
		[]any{int32(5), 0.75, int64(9), nil, 0.0, int64(0)})
	of, err := buffers(d)
	require.NoError(t, err)
	require.Equal(t, 4, of.reports[0].Size)
	require.Equal(t, 3, of.reports[0].Accepted)
	require.InDelta(t, 0.5, of.reports[0].Advantage, 0)
	require.Zero(t, of.reports[1].Size)
	require.InDelta(t, 0.75, of.reports[1].P50, 0)
	require.Equal(t, [][]string{{"1", "3"}, {"2", "1"}}, drawn(d, replayBufferWorth).Table.Rows)
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
