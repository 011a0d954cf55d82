package export

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// A summary is an answer to a message that asks for it, and the next message asks to continue.
func TestSummariesAreMessages(t *testing.T) {
	e := analysis.Episode{Prompt: schema.PromptRow{Problem: "1+2"},
		Trajectory: schema.TrajectoryRow{Source: rollout.SourceRollout},
		Turns: []schema.TurnRow{{Response: "so far<|im_end|>", Summary: new(true)},
			{Turn: 1, Response: "3<|im_end|>"}}}
	got, err := messages(e, "")
	require.NoError(t, err)
	want := []string{`{"role":"user","content":"1+2"}`,
		`{"role":"user","content":"Summarize what you did and learned. You will see the task and your summary, and ` +
			`not the turns before it."}`,
		`{"role":"assistant","content":"so far"}`, `{"role":"user","content":"Continue with the task."}`,
		`{"role":"assistant","content":"3"}`}
	require.Len(t, got, len(want))
	for i, m := range got {
		require.JSONEq(t, want[i], string(m))
	}
	require.True(t, episodeTurn(e.Turns[0], nil).Summary)
}
