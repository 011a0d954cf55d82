package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessage(t *testing.T) {
	all := func(int) bool { return true }
	none := func(int) bool { return false }
	second := func(block int) bool { return block == 1 }
	for _, c := range []struct {
		name, response string
		drop           func(int) bool
		want           string
	}{
		{"an answer", AnswerResponse("7"), all, `<reason></reason><answer>\boxed{7}</answer>`},
		{"a call", "so</reason>" + Call("print(1)", "") + EndOfTurn, all, "<reason>so</reason>"},
		{"a call that stays", BrokenResponse("print("), none, "<reason></reason>" + BrokenCall("print(")},
		{"text around calls", "a" + Call("1", "") + "b" + Call("2", "") + "c", second, "<reason>a" + Call("1", "") +
			"bc"},
		{"a call cut at the token limit", "a" + Call("1", "") + callOpen + "pri", all, "<reason>a" + callOpen + "pri"},
		{"the tag in the middle", "a" + EndOfTurn + "b", all, "<reason>a" + EndOfTurn + "b"},
		{"nothing", "", all, "<reason>"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Message(reasonOpen, c.response, c.drop)) })
	}
}

// Message counts the same blocks as Parse.
func TestMessageCountsTheBlocksOfParse(t *testing.T) {
	for _, response := range []string{
		Call("1", "") + "<tool_call>" + Call("2", ""), "<tool_call>x</tool_call></tool_call><tool_call>y</tool_call>",
		"<tool_call>x",
	} {
		blocks := 0
		Message("", response, func(int) bool { blocks++; return true })
		require.Len(t, RStar2{}.Parse(response, nil).Calls, blocks, response)
		require.Equal(t, blocks, Blocks(response), response)
	}
}

func TestToolResponse(t *testing.T) {
	require.Contains(t, RStar2{}.Context(View{Turn: 1, Rounds: []Round{{Bodies: []string{"1"}}}}), ToolResponse("1"))
}
