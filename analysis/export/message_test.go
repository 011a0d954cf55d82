package export

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// episode is a sampled trajectory: a call that ran, one that could not be read, and an answer.
func episode() analysis.Episode {
	return analysis.Episode{
		Reward:     &schema.RewardRow{},
		Prompt:     schema.PromptRow{Problem: "2 < 3 + x & more?"},
		Trajectory: schema.TrajectoryRow{TrajectoryID: "00001/0000/000", Source: rollout.SourceRollout},
		Turns: []schema.TurnRow{
			{Turn: 0, Response: "think</reason>" + protocol.Call("print(5)", "") + protocol.BrokenCall("print(") +
				protocol.EndOfTurn, ToolCalls: 2},
			{Turn: 1, Response: protocol.AnswerResponse("5")},
		},
		Calls: []schema.ToolCallRow{
			{Turn: 0, Call: 0, Name: protocol.ToolName, Arguments: `{"code": "print(5)", "input": ""}`,
				Code: "print(5)", Status: "ok", Stdout: "5\n", Response: "Tool call success\nstdout: 5"},
			{Turn: 0, Call: 1, Arguments: "{", Status: "decode_error", Response: "Failed to decode tool call: x"},
		},
	}
}

func list(t *testing.T, e analysis.Episode) []any { return listOf(t, e, "") }

// listOf returns the messages of an episode in a protocol.
func listOf(t *testing.T, e analysis.Episode, protocol string) []any {
	t.Helper()
	raw, err := messages(e, opening(protocol))
	require.NoError(t, err)
	var out []any
	for _, m := range raw {
		var v any
		require.NoError(t, json.Unmarshal(m, &v))
		out = append(out, v)
	}
	return out
}

func TestMessagesOfASampledTrajectory(t *testing.T) {
	type m = map[string]any
	require.Equal(t, []any{
		m{"role": "user", "content": "2 < 3 + x & more?"},
		m{"role": "assistant", "content": "<reason>think</reason>" + protocol.BrokenCall("print("), "tool_calls": []any{
			m{"id": "call_0_0", "type": "function",
				"function": m{"name": protocol.ToolName, "arguments": `{"code": "print(5)", "input": ""}`}},
		}},
		m{"role": "tool", "tool_call_id": "call_0_0", "name": protocol.ToolName,
			"content": "Tool call success\nstdout: 5"},
		m{"role": "user", "content": "<tool_response>\nFailed to decode tool call: x\n</tool_response>"},
		m{"role": "assistant", "content": `<reason></reason><answer>\boxed{5}</answer>`},
	}, list(t, episode()))
	raw, err := messages(episode(), opening(""))
	require.NoError(t, err)
	require.Contains(t, string(raw[0]), "2 < 3 + x & more?", "signs stand for themselves")
}

// A turn cut before its calls ran keeps them in its text.
func TestMessagesOfACutTrajectory(t *testing.T) {
	e := episode()
	e.Calls, e.Turns = nil, e.Turns[:1]
	got := list(t, e)
	require.Len(t, got, 2)
	require.Equal(t, map[string]any{"role": "assistant", "content": "<reason>think</reason>" +
		protocol.Call("print(5)", "") + protocol.BrokenCall("print(")}, got[1])
}

// Texts from elsewhere are in no protocol of ours: their text is left as it is.
func TestMessagesOfAnImportedSolution(t *testing.T) {
	e := episode()
	e.Trajectory.Source = "elsewhere/6b"
	e.Turns = []schema.TurnRow{{Response: "So <<2+3="}, {Turn: 1, Response: "5\n#### 5"}}
	e.Calls = []schema.ToolCallRow{{Name: "calculator", Arguments: `{"expression":"2+3"}`, Status: "ok", Stdout: "5\n"}}
	got := list(t, e)
	require.Len(t, got, 4)
	require.Equal(t, "So <<2+3=", got[1].(map[string]any)["content"])
	require.Equal(t, "5", got[2].(map[string]any)["content"], "what the calculator printed")
}

// An imported conversation comes back as it was: spellings of numbers, nulls and other fields too.
func TestMessagesOfAConversation(t *testing.T) {
	e := episode()
	const text = `[{"role":"user","content":"<&> \u0041","x":1.50},{"role":"assistant","content":null,` +
		`"function_call":null,"tool_calls":[]}]`
	e.Trajectory.Messages = new(text)
	raw, err := messages(e, opening(""))
	require.NoError(t, err)
	again, err := encode(raw)
	require.NoError(t, err)
	require.Equal(t, text, string(again))
}

func TestLineOfAConversation(t *testing.T) {
	e := episode()
	e.Trajectory.GroupID = "00001/0000"
	e.Trajectory.Messages = new(
		`[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"},` +
			`{"role":"user","content":"bye"}]`)
	e.Trajectory.Item = new(`{"task_id":7,"trial":3,"tools":[{"type":"function"}],"info":{"a":1}}`)
	v, err := openaiLine("r", 1, e, opening(""))
	require.NoError(t, err)
	text, err := encode(v)
	require.NoError(t, err)
	require.JSONEq(t, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"},
			{"role":"user","content":"bye"}],
		"tools":[{"type":"function"}],"task_id":7,"info":{"a":1},"trial":3,"reward":0,"run":"r","step":1,
		"group_id":"00001/0000","trajectory_id":"00001/0000/000","problem_id":"",
		"success":false,"kept":false,"source":{"task_id":7,"trial":3,"tools":[{"type":"function"}],
			"info":{"a":1}}}`, string(text))
	v, err = sftLine("r", 1, e, opening(""))
	require.NoError(t, err)
	got := v.(completion)
	require.Len(t, got.Prompt, 2)
	require.Len(t, got.Completion, 1, "what no response follows teaches nothing")
	require.JSONEq(t, `[{"type":"function"}]`, string(got.Tools))
}

// Arguments in lines for fine-tuning are objects, and everything else of a message stays.
func TestCompletionsHaveArgumentsAsObjects(t *testing.T) {
	v, err := sftLine("r", 1, episode(), opening(""))
	require.NoError(t, err)
	text, err := encode(v)
	require.NoError(t, err)
	require.Contains(t, string(text), `"arguments":{"code":"print(5)","input":""}`)
	e := episode()
	e.Trajectory.Messages = new(`[{"role":"user","content":"q"},{"role":"assistant","content":null,"x":1.50,` +
		`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"n\": 1.50}"}},` +
		`{"id":"b","function":{"name":"f","arguments":"oops"}},{"id":"c","function":{"name":"f","arguments":{}}}]}]`)
	v, err = sftLine("r", 1, e, opening(""))
	require.NoError(t, err)
	require.Equal(t, `{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":{"n":1.50},`+
		`"name":"f"},"id":"a"},{"id":"b","function":{"name":"f","arguments":"oops"}},{"id":"c","function":{"name":"f",`+
		`"arguments":{}}}],"x":1.50}`, string(v.(completion).Completion[0]))
}

func TestDamagedTexts(t *testing.T) {
	e := episode()
	e.Trajectory.Messages = new(`{}`)
	_, err := messages(e, opening(""))
	require.ErrorContains(t, err, "read messages of trajectory 00001/0000/000")
	e.Trajectory.Messages, e.Trajectory.Item = new(`[]`), new(`[]`)
	_, err = openaiLine("r", 1, e, opening(""))
	require.ErrorContains(t, err, "read item of trajectory 00001/0000/000")
	e.Trajectory.Item = nil
	_, err = sftLine("r", 1, e, opening(""))
	require.ErrorContains(t, err, "it holds no response")
}

// Calls in tags or fences stay in the content, and what answered them are user messages.
func TestMessagesOfAnotherProtocol(t *testing.T) {
	type m = map[string]any
	e := episode()
	e.Turns = []schema.TurnRow{
		{Turn: 0, Response: "<think>a</think><search>b</search>", ToolCalls: 1},
		{Turn: 1, Observation: "\n<information>c</information>\n", Response: "<answer>d</answer><|im_end|>"},
	}
	e.Calls = []schema.ToolCallRow{{Turn: 0, Name: "search", Arguments: `{"query": "b"}`, Response: "c"}}
	e.Trajectory.Text = "<think>a</think><search>b</search>\n<information>c</information>\n<answer>d</answer><|im_end|>"
	require.Equal(t, []any{
		m{"role": "user", "content": "2 < 3 + x & more?"},
		m{"role": "assistant", "content": "<think>a</think><search>b</search>"},
		m{"role": "user", "content": "c"},
		m{"role": "assistant", "content": "<answer>d</answer>"},
	}, listOf(t, e, "search"))

	block := "<tool_call>\n" + `{"name": "search", "arguments": {"query": "b"}}` + "\n</tool_call><|im_end|>"
	e.Turns, e.Trajectory.Text = []schema.TurnRow{{Turn: 0, Response: block, ToolCalls: 1}}, block
	require.Equal(t, []any{
		m{"role": "user", "content": "2 < 3 + x & more?"},
		m{"role": "assistant", "content": nil, "tool_calls": []any{m{"id": "call_0_0", "type": "function",
			"function": m{"name": "search", "arguments": `{"query": "b"}`}}}},
		m{"role": "tool", "tool_call_id": "call_0_0", "name": "search", "content": "c"},
	}, listOf(t, e, "hermes"))
}

// What a chat template wrote the calls in does not matter: the record has the messages. A call that could not be read
// stays in the content.
func TestMessagesOfChat(t *testing.T) {
	type m = map[string]any
	e := episode()
	const glm = "<think>a</think>I look.<tool_call>search\n<arg_key>query</arg_key>\n" +
		"<arg_value>b</arg_value>\n</tool_call>"
	content, empty, reasoning := "I look.", "", "a"
	e.Turns = []schema.TurnRow{
		{Turn: 0, Response: glm + "<|observation|>", ToolCalls: 1, Content: &content, Reasoning: &reasoning},
		{Turn: 1, Response: "<tool_call>search{</tool_call><|observation|>", ToolCalls: 1, Content: &empty},
		{Turn: 2, Response: "It is <tool_c"},
	}
	e.Calls = []schema.ToolCallRow{{Turn: 0, Name: "search", Arguments: `{"query": "b"}`, Response: "c"},
		{Turn: 1, Arguments: "search{", Response: "no name"}}
	require.Equal(t, []any{
		m{"role": "user", "content": "2 < 3 + x & more?"},
		m{"role": "assistant", "content": "I look.", "reasoning_content": "a", "tool_calls": []any{m{"id": "call_0_0",
			"type": "function", "function": m{"name": "search", "arguments": `{"query": "b"}`}}}},
		m{"role": "tool", "tool_call_id": "call_0_0", "name": "search", "content": "c"},
		m{"role": "assistant", "content": "search{"},
		m{"role": "user", "content": "<tool_response>\nno name\n</tool_response>"},
		m{"role": "assistant", "content": "It is <tool_c"},
	}, listOf(t, e, "chat"))
}
