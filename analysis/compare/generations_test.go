package compare_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/schema"
)

func rewards(values ...float64) []schema.RewardRow {
	out := make([]schema.RewardRow, len(values))
	for i, v := range values {
		out[i] = schema.RewardRow{GroupID: schema.GroupID(1, 0), TrajectoryID: schema.TrajectoryID(1, 0, i), Reward: v,
			Success: v > 0.5, Verdict: "exact"}
		if v <= 0.5 {
			out[i].Verdict = "wrong"
		}
	}
	return out
}

// selected makes a row for each fate: "" is kept.
func selected(reasons ...string) []schema.SelectionRow {
	out := make([]schema.SelectionRow, len(reasons))
	for i, r := range reasons {
		out[i] = schema.SelectionRow{TrajectoryID: schema.TrajectoryID(1, 0, i), Kept: r == "", Reason: r}
	}
	return out
}

// batch makes a row of two tokens, of which the second has the loss, for each advantage.
func batch(advantages ...float32) []schema.BatchRow {
	out := make([]schema.BatchRow, len(advantages))
	for i, a := range advantages {
		out[i] = schema.BatchRow{TrajectoryID: schema.TrajectoryID(1, 0, i), LossMask: []int32{0, 1},
			Advantages: []float32{0, a}}
	}
	return out
}

var from = map[string]int{schema.StageReward: 0, schema.StageResample: 1, schema.StageAdvantage: 1}

func example() compare.Generations {
	return compare.OfGenerations("r", 1,
		&analysis.StepGeneration{Gen: 0, Rewards: rewards(1, 0, 1, 0),
			Selection: selected("", "", "zero_variance", "roc_negative_surplus"), Batch: batch(1, -1, 0.5)},
		&analysis.StepGeneration{Gen: 1, From: from, Rewards: rewards(1, 1, 0.75, 0),
			Selection: selected("", "roc_positive_surplus", "zero_variance", ""), Batch: batch(2, 1)})
}

func TestGenerations(t *testing.T) {
	d := example()
	require.Equal(t, []compare.Borrowed{{Gen: 1, Stage: "reward", From: 0}}, d.Borrowed)

	require.Equal(t, 4, d.Rewards.Trajectories)
	require.Equal(t, 2, d.Rewards.Changed)
	require.InDelta(t, 0.5, d.Rewards.MeanBefore, 1e-12)
	require.InDelta(t, 0.6875, d.Rewards.MeanAfter, 1e-12)
	require.InDelta(t, 0.75, d.Rewards.SuccessAfter, 1e-12)
	require.Equal(t, []compare.Change{
		{Trajectory: "00001/0000/001", Before: 0, After: 1, VerdictBefore: "wrong", VerdictAfter: "exact"},
		{Trajectory: "00001/0000/002", Before: 1, After: 0.75, VerdictBefore: "exact", VerdictAfter: "exact"},
	}, d.Rewards.Largest)
	// 11 bins over −1 … 1, of 2/11 each: −0.25 in the fifth, twice 0 in the sixth, 1 in the last.
	var counts []int
	for _, b := range d.Rewards.Histogram {
		counts = append(counts, b.N)
	}
	require.Equal(t, []int{0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1}, counts)
	require.InDelta(t, -1, d.Rewards.Histogram[0].From, 1e-12)
	require.InDelta(t, 1, d.Rewards.Histogram[10].To, 1e-12)

	require.Equal(t, 2, d.Selection.KeptBefore)
	require.Equal(t, 2, d.Selection.KeptAfter)
	require.Equal(t, 2, d.Selection.Changed)
	require.Equal(t, []compare.Fate{
		{"kept", "kept", 1}, {"kept", "roc_positive_surplus", 1}, {"roc_negative_surplus", "kept", 1},
		{"zero_variance", "zero_variance", 1},
	}, d.Selection.Fates)

	a := d.Advantages
	require.Equal(t, [5]int{3, 2, 2, 2, 1}, [5]int{a.RowsBefore, a.RowsAfter, a.Both, a.Changed, a.Flips})
	require.InDelta(t, 0.5/3, a.MeanBefore, 1e-12)
	require.InDelta(t, 1.5, a.MeanAfter, 1e-12)
	require.InDelta(t, 0.5, a.StdAfter, 1e-12)
	require.InDelta(t, math.Sqrt((1+1+0.25)/3-0.25/9), a.StdBefore, 1e-12)
	require.InDelta(t, 1, *a.Correlation, 1e-12) // two points lie on a line, which rises
}

func TestEqualAndEmptyGenerations(t *testing.T) {
	same := &analysis.StepGeneration{Rewards: rewards(1, 0), Selection: selected("", ""), Batch: batch(1, 1)}
	d := compare.OfGenerations("r", 1, same, same)
	require.Zero(t, d.Rewards.Changed+d.Selection.Changed+d.Advantages.Changed+d.Advantages.Flips)
	require.Equal(t, []compare.Bin{{N: 2}}, d.Rewards.Histogram)
	require.Nil(t, d.Advantages.Correlation, "no side varies")

	empty := compare.OfGenerations("r", 1, &analysis.StepGeneration{}, &analysis.StepGeneration{Rewards: rewards(1)})
	require.Equal(t, 1, empty.Rewards.OnlyAfter)
	for _, d := range []compare.Generations{d, empty} {
		text, err := json.Marshal(d)
		require.NoError(t, err)
		require.NotContains(t, string(text), ":null,", "lists are never null")
		require.NoError(t, d.Write(io.Discard))
	}
}

func TestGenerationsOfOtherVerdicts(t *testing.T) {
	before, after := rewards(1, 0), rewards(1, 0)
	after[1].Verdict = "no_answer"
	d := compare.OfGenerations("r", 1, &analysis.StepGeneration{Rewards: before},
		&analysis.StepGeneration{Gen: 1, Rewards: after})
	require.Equal(t, 1, d.Rewards.Changed)
	var text bytes.Buffer
	require.NoError(t, d.Write(&text))
	require.Contains(t, text.String(), "no reward is another, only verdicts\n")
}

func TestTextOfGenerations(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, example().Write(&out))
	for _, want := range []string{
		"run r, step 1: generation 0 → 1\n",
		"generation 1 has no reward of its own: that of generation 0, which the step has\n",
		"rewards     2 of 4 trajectories changed\n", "mean      0.5000 → 0.6875 (+0.1875)\n",
		"00001/0000/001  0 (wrong) → 1 (exact)\n", "     1    kept → roc_positive_surplus\n",
		"3 → 2 rows, 2 in both: 2 changed, 1 of another sign\n", "correlation of those in both  1.0000\n",
	} {
		require.Contains(t, out.String(), want)
	}
}
