package reward

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A program has no reward until its tests have passed.
func TestUnitTests(t *testing.T) {
	d, ok := Declared("unit_tests")
	require.True(t, ok)
	scorer, err := New("unit_tests", nil)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		answer   string
		answered bool
		passed   bool
		verdict  Verdict
		reward   float64
		asked    bool
	}{
		"passed":    {"def f(): pass", true, true, Passed, 1, true},
		"failed":    {"def f(): pass", true, false, Failed, 0, true},
		"blank":     {" \n", true, true, NoAnswer, 0, false},
		"no answer": {"", false, true, NoAnswer, 0, false},
	} {
		trajectory := Trajectory{Answer: c.answer, Answered: c.answered, Gold: "tests"}
		outcome := d.Outcome(trajectory, Options{})
		q, asked := AskTests(outcome, "tests")
		require.Equal(t, c.asked, asked, name)
		if asked {
			require.Equal(t, Question{Answer: c.answer, Gold: "tests"}, q, name)
		}
		outcome = outcome.Settled(c.passed)
		require.Equal(t, c.verdict, outcome.Verdict, name)
		require.Equal(t, c.verdict == Passed, outcome.Verdict.Correct(), name)
		got, err := scorer.Score(trajectory, outcome)
		require.NoError(t, err)
		require.Equal(t, c.reward, got, name)
	}
}
