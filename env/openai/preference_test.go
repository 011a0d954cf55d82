package openai

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A pair is one task with two trials, in each of the forms in which people write pairs.
func TestPreferencePairs(t *testing.T) {
	for name, pair := range map[string]string{
		"texts": `{"prompt": "q", "chosen": "a", "rejected": "b"}`,
		"repeated": `{"prompt": "q", "chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
			"rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}]}`,
		"lists": `{"prompt": [{"role": "user", "content": "q"}], "chosen": [{"role": "assistant", "content": "a"}],
			"rejected": [{"role": "assistant", "content": "b"}]}`,
	} {
		tasks, err := Read([]byte("[" + pair + "]"))
		require.NoError(t, err, name)
		require.Len(t, tasks, 1, name)
		require.Len(t, tasks[0].Trials, 2, name)
		for i, want := range []string{"a", "b"} {
			item := tasks[0].Trials[i]
			require.Equal(t, []any{float64(1 - i), "q", want}, []any{item.Reward, item.Messages[0].Text,
				item.Messages[1].Text}, name)
		}
	}
	for pair, want := range map[string]string{
		`{"chosen": "a", "rejected": "b"}`:               "item 0: prompt: is missing, and chosen does not begin",
		`{"prompt": "q", "chosen": 1, "rejected": "b"}`:  "chosen: must be text or a list of messages, got 1",
		`{"prompt": "q", "chosen": "a", "rejected": []}`: "rejected: must be text or a list of messages, got []",
	} {
		_, err := Read([]byte(pair))
		require.ErrorContains(t, err, want)
	}
}
