package grading

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// A question with several golds is answered by any of them, compared by words. Every reward of search_qa sees all of
// them.
func TestSeveralGolds(t *testing.T) {
	gold := env.JoinGolds([]string{"Norwick and Seldon", "Seldon and Norwick"})
	for name, c := range map[string]struct {
		set, answer string
		reward      float64
		verdict     reward.Verdict
	}{
		"the second gold":    {"{name: exact_match}", "seldon and Norwick.", 1, reward.Exact},
		"half":               {"{name: f1}", "Norwick", 0.5, reward.Wrong},
		"F1":                 {"{name: f1}", "Norwick and Seldon", 1, reward.Exact},
		"PRS":                {"{name: prs_short}", "Seldon and Norwick", 1 + 0.1 + 1, reward.Exact},
		"PRS, wrong":         {"{name: prs_short}", "Talland", 1 + 0.1, reward.Wrong},
		"PRS, long, matched": {"{name: prs_long}", "Seldon and Norwick", 1 + 0.1 + 1 + 1, reward.Exact},
		"no answer":          {"{name: exact_match}", "", 0, reward.NoAnswer},
	} {
		resolved, err := recipes.Resolve("searchqa", "", []string{"reward=" + c.set}, nil, nil)
		require.NoError(t, err, name)
		row := told(c.answer, gold)
		row.ToolErrors = 0
		if row.HasAnswer = c.answer != ""; !row.HasAnswer {
			row.FinalAnswer = ""
		}
		got, err := New(&resolved.Recipe, 1).Score(row)
		require.NoError(t, err, name)
		require.InDelta(t, c.reward, got.Reward, 1e-9, name)
		require.Equal(t, string(c.verdict), got.Verdict, name)
		require.Equal(t, c.verdict.Correct(), got.Success, name)
	}
}
