package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

func TestFinalAnswer(t *testing.T) {
	thought, answer := FinalAnswer(`Add them. \boxed{4}.`)
	require.Equal(t, []string{"Add them.", "4"}, []string{thought, answer})
	thought, answer = FinalAnswer(" Paris\n")
	require.Equal(t, []string{"", "Paris"}, []string{thought, answer})
	thought, answer = FinalAnswer(`<think>\boxed{3}?</think>It is 4.`)
	require.Equal(t, []string{"", "It is 4."}, []string{thought, answer})
}

// A recorded conversation has the tokens of the rollout in which a policy writes the same, and only the responses are
// trained.
func TestRecordedIsWhatARolloutSees(t *testing.T) {
	tok, err := NewTokenizer()
	require.NoError(t, err)
	l, err := NewLoop(Settings{MaxTurns: 2, MaxTurnTokens: 200, MaxTokens: 1000, MaxToolTextBytes: 8,
		Temperature: 1}, tok, 1)
	require.NoError(t, err)
	task := env.Task{ID: "q", Level: 1, Text: "What is 2+2?"}
	moves := []RecordedMove{{Move: env.Move{Code: "print(4)"}, Result: "4444444444444444"},
		{Move: env.Move{Answer: "4"}}}
	d, err := l.Recorded(t.Context(), task, moves, 0)
	require.NoError(t, err)
	prompt := protocol.RStar2{}.Context(protocol.View{Task: task.Text})
	text := tok.Decode(d.Tokens)
	require.Equal(t, prompt, text[:len(prompt)])
	require.NotContains(t, text, "4444444444444444", "tool texts are cut as in a rollout")
	var trained []int32
	for i, m := range d.Mask {
		if m == 1 {
			trained = append(trained, d.Tokens[i])
		}
	}
	require.Equal(t, protocol.CallResponse("print(4)")+protocol.AnswerResponse("4"), tok.Decode(trained))

	for want, moves := range map[string][]RecordedMove{
		"the episode has ended":       {moves[1], moves[1]},
		"ends as ":                    {moves[0]},
		"last of rollout.max_turns 2": {moves[0], moves[0], moves[1]},
		"which is a mark of protocol": {{Move: env.Move{Answer: protocol.EndOfTurn}}},
		"unknown tool":                {{Move: env.Move{Tool: "fly", Arguments: "{}"}}, moves[1]},
	} {
		_, err := l.Recorded(t.Context(), task, moves, 0)
		require.ErrorContains(t, err, want, want)
	}
}
