package evaluation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/schema"
)

// An episode counts if it calls and all of its calls have the form: programs may fail, and nothing else may be wrong.
func TestValidityOf(t *testing.T) {
	broke := "the sandbox broke"
	for name, c := range map[string]struct {
		statuses []string
		valid    int
		counts   bool
	}{
		"no call":           {nil, 0, false},
		"one that ran":      {[]string{"ok"}, 1, true},
		"a failing program": {[]string{"ok", "error"}, 2, true},
		"over the budget":   {[]string{"over_budget"}, 1, true},
		"not decoded":       {[]string{"ok", "decode_error"}, 1, false},
		"unknown tool":      {[]string{"unknown_tool"}, 0, false},
		"bad arguments":     {[]string{"bad_arguments"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := "one", "two"
			rows := []schema.EvaluationRow{
				{ProblemID: "p", TrajectoryID: &one},
				{ProblemID: "p", Sample: 1, TrajectoryID: &two, Greedy: true},
			}
			calls := []schema.EvaluationCallRow{
				{TrajectoryID: two, Status: "decode_error"},              // of a greedy episode
				{TrajectoryID: one, Status: "", Excluded: &broke},        // without a verdict
				{TrajectoryID: "three", Status: "decode_error", Call: 7}, // of an episode that was excluded
			}
			for i, s := range c.statuses {
				calls = append(calls, schema.EvaluationCallRow{TrajectoryID: one, Call: int32(i), Status: s})
			}
			v, ok := evaluation.ValidityOf(rows, calls, 1)
			require.True(t, ok)
			require.Equal(t, []int{len(c.statuses), c.valid, 1}, []int{v.Calls, v.Valid, v.Rate.N})
			want := 0.0
			if c.counts {
				want = 1
			}
			require.Equal(t, want, v.Rate.Success)
			require.Less(t, v.Rate.CILow, v.Rate.CIHigh)
		})
	}
	_, ok := evaluation.ValidityOf([]schema.EvaluationRow{{ProblemID: "p"}}, nil, 1)
	require.False(t, ok, "the episode is not recorded")
	_, ok = evaluation.ValidityOf(nil, nil, 1)
	require.False(t, ok)
}
