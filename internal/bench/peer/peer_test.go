package peer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// By hand: steps end at 10, 14 and 20, and 2 of the 4 seconds of the second step are sampling.
func TestFigures(t *testing.T) {
	steps := between([][5]float64{{10, 9, 9, 9, 9}, {14, 2, 0.5, 1, 30}, {20, 3, 0, 2, 70}})
	require.Equal(t, []step{{Seconds: 4, Sampling: 2, Reward: 0.5, Update: 1, Tokens: 30},
		{Seconds: 6, Sampling: 3, Update: 2, Tokens: 70}}, steps)
	require.Equal(t, []bench.Figure{bench.Of("s a step", 5), bench.Of("tokens/s", 10), bench.Of("sampling %", 50),
		bench.Of("reward %", 5), bench.Of("update %", 30), bench.Of("rest %", 15)}, figures([][]step{steps}))
	r := &bench.Report{Dir: t.TempDir()}
	report(r, [][]step{steps}, [][]step{{{Seconds: 16}}, {{Seconds: 14}}})
	require.NoError(t, r.Missed())
	report(r, [][]step{steps}, [][]step{{{Seconds: 14}}})
	require.EqualError(t, r.Missed(), "goal missed: TRL ÷ Ropewalk: ratio of s a step is 2.8, want at least 3")
}

// The recipe can be written as TRL's settings, and each size divides the rows of a step and of a trial.
func TestRead(t *testing.T) {
	var c contest
	require.NoError(t, c.read())
	require.Equal(t, 1e-5, c.settings["learning_rate"])
	require.Equal(t, 0.28, c.settings["epsilon_high"])
	for _, rows := range sizes {
		require.Zero(t, c.prompts*c.samples%rows)
		require.Zero(t, triedPrompts*c.samples%rows)
	}
}

// Only a response that ends has an answer.
func TestGrade(t *testing.T) {
	require.Equal(t, []float64{1, 0, 0}, grade([]string{"17 + 25 = 42.<|im_end|>", "42", "41<|im_end|>"},
		[]string{"42", "42", "42"}))
}
