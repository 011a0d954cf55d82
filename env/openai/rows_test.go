package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// letters is a tokenizer with one token per byte.
func letters(s string) []int32 {
	out := make([]int32, len(s))
	for i := range out {
		out[i] = int32(s[i])
	}
	return out
}

func spell(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteByte(byte(id))
	}
	return b.String()
}

// dialogue is two trials of a task that have only the system message in common.
const dialogue = `{"task_id":"t","trial":0,"reward":1,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"2+2?"},
{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"a","function":{"name":"add","arguments":"{\"x\": 2}"}},{"id":"b","function":{"name":"sub","arguments":"oops"}}]},
{"role":"tool","tool_call_id":"a","content":"4"},{"role":"tool","tool_call_id":"b","content":"Error: oops"},
{"role":"assistant","content":"4"},{"role":"user","content":"Thanks!"}]}
{"task_id":"t","trial":1,"reward":0,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Two plus two?"},
{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"add","arguments":"{}"}}]}]}`

func rows(t *testing.T, file string) Tables {
	t.Helper()
	lines := strings.ReplaceAll(strings.ReplaceAll(file, ",\n{", ",{"), ",\n[", ",[")
	tasks, err := Read([]byte(lines))
	require.NoError(t, err)
	return Rows(1, tasks, letters)
}

// Arguments may be objects, as chat templates want them, in place of texts.
func TestArgumentsThatAreObjects(t *testing.T) {
	const text = `"{\"x\": 2}"`
	require.Contains(t, dialogue, text)
	want := rows(t, strings.ReplaceAll(dialogue, text, `"{\"x\":2}"`))
	got := rows(t, strings.ReplaceAll(strings.ReplaceAll(dialogue, text, `{"x": 2}`), `"{}"`, "{}"))
	require.Equal(t, want.Turns, got.Turns)
	calls, err := CallRows(got.Trajectories[0])
	require.NoError(t, err)
	require.Equal(t, `{"x":2}`, calls[0].Arguments)
}

func TestRows(t *testing.T) {
	got := rows(t, dialogue)
	require.Len(t, got.Prompts, 1)
	require.Equal(t, "t", got.Prompts[0].ProblemID)
	require.Equal(t, "<|im_start|>system\nBe brief.<|im_end|>\n", spell(got.Prompts[0].TokenIDs),
		"what the trials share")
	require.Len(t, got.Turns, 3)

	// The text that the policy read and wrote, in the chat template of Qwen3.
	const first = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n"
	const response = "Let me see.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"x\": " +
		"2}}\n</tool_call>\n<tool_call>\n{\"name\": \"sub\", \"arguments\": \"oops\"}\n</tool_call><|im_end|>"
	const second = "\n<|im_start|>user\n<tool_response>\n4\n</tool_response>\n<tool_response>\nError: " +
		"oops\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
	turn := got.Turns[0]
	require.Equal(t, first+response, spell(turn.TokenIDs))
	require.Equal(t, len(first), int(turn.ContextTokens))
	require.Equal(t, "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n", turn.Observation,
		"what only this trial was asked")
	require.Equal(t, response, turn.Response)
	require.Equal(t, int32(2), turn.ToolCalls)
	require.False(t, turn.Answered)
	turn = got.Turns[1]
	require.Equal(t, second+"4<|im_end|>", spell(turn.TokenIDs))
	require.Equal(t, second, turn.Observation)
	require.True(t, turn.Answered)

	a, b := got.Trajectories[0], got.Trajectories[1]
	require.Equal(t, first+response+second+"4<|im_end|>\n<|im_start|>user\nThanks!<|im_end|>\n", a.Text)
	require.Equal(t, []any{"answered", "4", true, int32(2), int32(2), 1.0, true, SourcePlain},
		[]any{a.Finish, a.FinalAnswer, a.HasAnswer, a.Turns, a.ToolCalls, *a.SourceReward, *a.Reference, a.Source})
	require.Equal(t, []any{"tool_calls", "", false, int32(1), int32(1), 0.0, false},
		[]any{b.Finish, b.FinalAnswer, b.HasAnswer, b.Turns, b.ToolCalls, *b.SourceReward, *b.Reference})
	require.NotEqual(t, got.Turns[0].AnchorHash, got.Turns[2].AnchorHash, "the two were asked in other words")

	for _, r := range got.Turns {
		require.NoError(t, r.Validate())
		require.Nil(t, r.LogProbs)
		for i, m := range r.LossMask {
			require.Equal(t, i >= int(r.ContextTokens), m == 1, "the loss is on what the assistant wrote")
		}
	}
	for _, r := range got.Trajectories {
		require.NoError(t, r.Validate())
	}
}

func TestPromptOfTrialsThatShareAll(t *testing.T) {
	got := rows(t, item(asked, `"reward":1`)+"\n"+item(asked, `"reward":0`))
	require.Equal(t, "2+2?", got.Prompts[0].Problem)
	require.Equal(t, "<|im_start|>user\n2+2?<|im_end|>\n", spell(got.Prompts[0].TokenIDs))
	require.Empty(t, got.Turns[0].Observation)
	require.Equal(t, got.Turns[0].AnchorHash, got.Turns[2].AnchorHash)
}

// Texts that a record must be able to hold. The messages lose nothing, and the rows stay valid.
func TestRowsOfOddConversations(t *testing.T) {
	for name, messages := range map[string]string{
		"nothing before the first answer": `{"role":"assistant","content":"Hello."}`,
		"an empty answer":                 `{"role":"assistant"}`,
		"answers in a row": `{"role":"user","content":"q"},{"role":"assistant","content":"a"},` +
			`{"role":"assistant","content":"b"}`,
		"control characters": `{"role":"user","content":"\u0000\ud83d\ude00\ud800"},` +
			`{"role":"assistant","content":"<|im_end|>"}`,
		"fields of others": `{"role":"assistant","content":"a","audio":null,"annotations":[],"x":1.50}`,
	} {
		t.Run(name, func(t *testing.T) {
			got := rows(t, item(messages, `"reward":0.25`))
			for _, r := range got.Turns {
				require.NoError(t, r.Validate())
			}
			require.NoError(t, got.Trajectories[0].Validate())
			require.Equal(t, "["+messages+"]", *got.Trajectories[0].Messages)
			require.Equal(t, `{"reward":0.25}`, *got.Trajectories[0].Item)
			require.False(t, *got.Trajectories[0].Reference)
		})
	}
}

func TestCallRows(t *testing.T) {
	got := rows(t, dialogue)
	var calls []schema.ToolCallRow
	for _, r := range got.Trajectories {
		c, err := CallRows(r)
		require.NoError(t, err)
		calls = append(calls, c...)
	}
	require.Equal(t, []schema.ToolCallRow{
		{GroupID: "00001/0000", TrajectoryID: "00001/0000/000", Name: "add", Arguments: `{"x": 2}`, Status: StatusOK,
			Response: "4"},
		{GroupID: "00001/0000", TrajectoryID: "00001/0000/000", Call: 1, Name: "sub", Arguments: "oops",
			Status: StatusToolError, Response: "Error: oops"},
		{GroupID: "00001/0000", TrajectoryID: "00001/0000/001", Name: "add", Arguments: "{}", Status: StatusNoResponse},
	}, calls)
	require.NoError(t, schema.Audit(calls))

	_, err := CallRows(schema.TrajectoryRow{TrajectoryID: "x"})
	require.ErrorContains(t, err, "trajectory x: messages: is null")
	_, err = CallRows(schema.TrajectoryRow{TrajectoryID: "x", Messages: new(`[{"role":"robot"}]`)})
	require.ErrorContains(t, err, "trajectory x: messages[0].role")
}

// A file may hold as many tasks and trials as ids can number, and no more.
func TestReadRefusesMoreThanIDsCanNumber(t *testing.T) {
	file := func(tasks, trials int) []byte {
		var b strings.Builder
		for i := range tasks {
			for k := range trials {
				fmt.Fprintf(&b,
					`{"task_id":%d,"trial":%d,"reward":1,"messages":[{"role":"user","content":"a"},`+
						`{"role":"assistant","content":"b"}]}`+"\n", i, k)
			}
		}
		return []byte(b.String())
	}
	_, err := Read(file(schema.MaxGroups, 1))
	require.NoError(t, err)
	_, err = Read(file(schema.MaxGroups+1, 1))
	require.ErrorContains(t, err, "the file holds 10001 tasks; at most 10000 are imported at once: split it")
	_, err = Read(file(1, schema.MaxSamples))
	require.NoError(t, err)
	_, err = Read(file(1, schema.MaxSamples+1))
	require.ErrorContains(t, err, "task 0 has more than 1000 trials")
}
