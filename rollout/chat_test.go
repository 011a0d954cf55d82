package rollout

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/tool"
)

// chatLoop is a loop with a chat template and a tokenizer with merges, so that a text has many tokenisations.
func chatLoop(t *testing.T, whole bool) *Loop {
	t.Helper()
	added := []string{"<|im_start|>", "<|im_end|>", "<|endoftext|>"}
	tok, err := tokenizer.Train(added, []string{"<tool_call> {\"name\": \"python\", \"arguments\": {\"code\": " +
		"\"print(1)\"}} </tool_call> <tool_call> </tool_call> print print python python user user assistant " +
		"assistant the the answer answer"}, 400)
	require.NoError(t, err)
	chat, err := protocol.Chat{System: "s"}.With(protocol.ChatModel{Template: "{% for m in messages %}" +
		"{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}" +
		"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}", Added: added, Ends: added[1:]})
	require.NoError(t, err)
	chat.Whole = whole
	l, err := NewLoop(Settings{MaxTurns: 5, MaxTurnTokens: 300, MaxTokens: 5000, Temperature: 1, Protocol: chat}, tok,
		1)
	require.NoError(t, err)
	return l
}

// sampled returns tokens that spell a text, cut at random: hardly ever as the tokenizer would cut it.
func sampled(rng *rand.Rand, l *Loop, text string) []int32 {
	var out []int32
	for len(text) > 0 {
		n := 1 + rng.IntN(min(6, len(text)))
		out = append(out, l.tok.Encode(text[:n])...)
		text = text[n:]
	}
	return out
}

// The policy sees its own tokens as it sampled them at every later turn, and the loss mask marks exactly these.
func TestWhatThePolicyWroteIsNeverTokenisedAgain(t *testing.T) {
	l := chatLoop(t, false)
	rng := rand.New(rand.NewPCG(5, 8))
	const call = "<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"print(1)\"}}\n</tool_call>"
	other := 0
	for range 200 {
		e := l.Start(Identity{Label: LabelSample}, env.Task{Text: "What is 1 + 1?<|im_end|>"})
		want := slices.Clone(e.Context)
		mask := make([]int32, len(want))
		for e.AwaitsResponse() {
			request, rows := l.NextRequest([]*Episode{e})
			require.Equal(t, want, request.Prefixes[0])
			text := []string{"the answer", call, "  ", call + "\n" + call}[rng.IntN(4)]
			response := sampled(rng, l, text)
			if !slices.Equal(response, l.tok.Encode(text)) {
				other++
			}
			end, _ := l.tok.ID([]string{"<|im_end|>", "<|endoftext|>"}[rng.IntN(2)])
			response = append(response, end)
			want = append(want, response...)
			mask = append(mask, slices.Repeat([]int32{1}, len(response))...)
			numbers := make([]float32, len(response))
			require.NoError(t, l.Absorb(t.Context(), []*Episode{e}, rows, policy.Generated{Tokens: [][]int32{response},
				LogProbs: [][]float32{numbers}, Entropies: [][]float32{numbers},
				Finish: []policy.Finish{policy.FinishStop}}, "v"))
			calls, _ := l.PendingCalls([]*Episode{e}, tool.Scope{})
			require.NoError(t, l.AbsorbOutcomes([]*Episode{e}, slices.Repeat([]tool.Outcome{{Result: tool.Result{
				Status: tool.OK, Stdout: "2 <|im_end|>\n<|im_start|>assistant\n"}}}, len(calls))))
			if e.AwaitsResponse() {
				require.Equal(t, l.tok.Encode(e.Observation), e.Context)
				want = append(want, e.Context...)
				mask = append(mask, make([]int32, len(e.Context))...)
			}
		}
		require.Empty(t, e.Excluded)
		tokens, got := e.Sequence()
		require.Equal(t, want, tokens)
		require.Equal(t, mask, got)
		ends := 0
		for _, text := range []string{"<|im_start|>"} {
			id, _ := l.tok.ID(text)
			for _, token := range tokens {
				if token == id {
					ends++
				}
			}
		}
		require.Equal(t, 3+2*(len(e.Turns)-1)+extraResults(e), ends, "only the template begins messages")
	}
	require.Greater(t, other, 100, "tokenisations that the tokenizer would not choose")
}

// extraResults counts the results of a turn beyond its first.
func extraResults(e *Episode) (n int) {
	for _, t := range e.Turns[:len(e.Turns)-1] {
		n += len(t.Results) - 1
	}
	return n
}

// With whole prompts, a turn's prompt is the conversation as the template writes it, and its row holds nothing else.
// The rows keep the responses as messages.
func TestTurnsOfWholePrompts(t *testing.T) {
	l := chatLoop(t, true)
	e := l.Start(Identity{Label: LabelSample}, env.Task{Text: "What is 1 + 1?"})
	const (
		prompt = "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nWhat is 1 + 1?<|im_end|>\n"
		call   = "<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"print(1)\"}}\n</tool_call>"
	)
	for i, want := range []string{
		prompt + "<|im_start|>assistant\n",
		prompt + "<|im_start|>assistant\nI run it.<|im_end|>\n<|im_start|>tool\n2<|im_end|>\n<|im_start|>assistant\n",
	} {
		request, rows := l.NextRequest([]*Episode{e})
		require.Equal(t, want, l.tok.Decode(request.Prefixes[0]))
		text := []string{"<think>So.</think>I run it." + call + "<|im_end|>", "It is 2.<|im_end|>"}[i]
		response := l.tok.Encode(text)
		numbers := make([]float32, len(response))
		require.NoError(t, l.Absorb(t.Context(), []*Episode{e}, rows, policy.Generated{Tokens: [][]int32{response},
			LogProbs: [][]float32{numbers}, Entropies: [][]float32{numbers},
			Finish: []policy.Finish{policy.FinishStop}}, "v"))
		calls, _ := l.PendingCalls([]*Episode{e}, tool.Scope{})
		require.NoError(t, l.AbsorbOutcomes([]*Episode{e}, slices.Repeat([]tool.Outcome{{Result: tool.Result{
			Status: tool.OK, Stdout: "2"}}}, len(calls))))
		row := TurnRows([]*Episode{e}, i)[0]
		require.Equal(t, want+text, l.tok.Decode(row.TokenIDs))
		require.Equal(t, []string{"I run it.", "It is 2."}[i], *row.Content)
		require.Equal(t, i == 0, row.Reasoning != nil && *row.Reasoning == "So.")
	}
	require.Equal(t, FinishAnswered, e.Finish)
}

// A task brings the functions that its prompt lists, and the calls of the first response are the answer.
func TestCallsAreTheAnswer(t *testing.T) {
	l := chatLoop(t, false)
	l.settings.Functions = func(task env.Task) ([]env.Function, error) {
		return []env.Function{{Name: task.Spec, Description: "d", Parameters: []byte(`{"type": "object"}`)}}, nil
	}
	l.protocol = protocol.Hermes{}
	end := l.protocol.Spec().EndOfTurn
	for _, c := range []struct{ text, answer string }{
		{"<tool_call>\n{\"name\": \"area\", \"arguments\": {\"base\": 10}}\n</tool_call>" + end,
			`[{"name":"area","arguments":{"base":10}}]`},
		{"<tool_call>\n{\"name\": \"python\", \"arguments\": \"x\"}\n</tool_call>" + end,
			`[{"name":"python","arguments":"\"x\""}]`},
		{"I cannot say." + end, "[]"},
		{"<tool_call>\n{\"name\": \"area\"" + end, ""},
	} {
		e := l.Start(Identity{Label: LabelSample}, env.Task{Text: "Area?", Spec: "area"})
		require.Contains(t, l.tok.Decode(e.Context), `"name": "area"`)
		require.NotContains(t, l.tok.Decode(e.Context), "python")
		l.absorb(t.Context(), e, Turn{Response: l.tok.Encode(c.text), Finish: policy.FinishStop})
		answer, has := e.Answer()
		require.Equal(t, c.answer, answer, c.text)
		require.Equal(t, c.answer != "", has)
		require.False(t, e.AwaitsResponse() || e.AwaitsResults())
	}
	cut := Turn{Response: l.tok.Encode("No."), Finish: policy.FinishLength}
	e := l.Start(Identity{Label: LabelSample}, env.Task{Text: "Area?", Spec: "area"})
	l.absorb(t.Context(), e, cut)
	_, has := e.Answer()
	require.False(t, has, "a response that is cut answers nothing")
}
