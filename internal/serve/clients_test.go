package serve_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
)

// clients finds a Python with the clients of others, or skips the test (make test-serve).
func clients(t *testing.T, modules ...string) string {
	t.Helper()
	if named := os.Getenv("ROPEWALK_SERVE_PYTHON"); named != "" {
		t.Setenv(python.Variable, named)
	}
	return pythontest.Need(t, "SERVE_CLIENTS", modules...)
}

// TestRealOpenAIClient: OpenAI's Python client asks for completions, chats, streams, tools and log-probabilities, and
// gets what the engine returns.
func TestRealOpenAIClient(t *testing.T) {
	interpreter := clients(t, "openai")
	f := start(t, published(t, 1), func(o *serve.Options) { o.Token = "key" })
	caller := start(t, f.dir, writing(`I add. <tool_call>{"name": "add", "arguments": {"a": 1, "b": 41}}</tool_call>`))
	prompt := f.model.Tokens.Encode("the answer to the question")
	var got struct {
		Models         []string
		IDs            []int32
		LogProbs       []float32
		Text, Streamed string
		Usage          []int
		Weights        string
		StreamedUsage  int       `json:"streamed_usage"`
		ChatPrompt     []int32   `json:"chat_prompt"`
		ChatIDs        []int32   `json:"chat_ids"`
		ChatLogProbs   []float32 `json:"chat_logprobs"`
		ChatTop        []int     `json:"chat_top"`
		Chat           string
		ChatStreamed   string `json:"chat_streamed"`
		Finish, Said   string
		Calls          [][]any
		StreamedCalls  [][]any `json:"streamed_calls"`
		Error, Missing string
		Denied         string
	}
	const seed = 11
	pythontest.Ask(t, interpreter, "testdata/clients.py", object{
		"url": f.http.URL, "tools": caller.http.URL, "key": "key", "prompt": prompt, "seed": seed,
	}, &got)
	generate := func(prefix []int32) policy.Generated {
		res, err := f.engine.Generate(t.Context(), policy.GenerateRequest{
			Role: policy.RolePolicy, Prefixes: [][]int32{prefix}, Streams: []uint64{seed}, MaxTokens: []int{12},
			Temperature: 1, Stop: f.model.Shape.EOS,
		})
		require.NoError(t, err)
		return res
	}
	want := generate(prompt)
	require.Equal(t, []string{"tiny"}, got.Models)
	require.Equal(t, want.Tokens[0], got.IDs)
	require.InDeltaSlice(t, want.LogProbs[0], got.LogProbs, 1e-5)
	require.Equal(t, []int{len(prompt), len(got.IDs)}, got.Usage)
	require.Equal(t, len(got.IDs), got.StreamedUsage)
	require.Equal(t, got.Text, got.Streamed)
	state, err := f.engine.State(t.Context(), policy.RolePolicy)
	require.NoError(t, err)
	require.Equal(t, state.Digest, got.Weights)

	require.Equal(t, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is the answer?<|im_end|>\n"+
		"<|im_start|>assistant\n", f.model.Tokens.Decode(got.ChatPrompt))
	want = generate(got.ChatPrompt)
	require.Equal(t, want.Tokens[0], got.ChatIDs)
	require.InDeltaSlice(t, want.LogProbs[0], got.ChatLogProbs, 1e-5)
	require.Len(t, got.ChatTop, len(got.ChatIDs))
	require.Equal(t, 3, got.ChatTop[0])
	require.Equal(t, got.Chat, got.ChatStreamed)

	arguments := object{"a": 1.0, "b": 41.0}
	require.Equal(t, "tool_calls", got.Finish)
	require.Equal(t, "I add.", got.Said)
	require.Equal(t, [][]any{{"add", arguments}}, got.Calls)
	require.Equal(t, [][]any{{0.0, "add", arguments}}, got.StreamedCalls)
	require.Equal(t, "temperature", got.Error)
	require.Equal(t, "model_not_found", got.Missing)
	require.Equal(t, "invalid_api_key", got.Denied)
}

// TestRealLMEval: lm-eval scores choices and generates texts through the server as the engine does by itself.
func TestRealLMEval(t *testing.T) {
	interpreter := clients(t, "lm_eval", "transformers")
	f := start(t, published(t, 1), func(o *serve.Options) { o.Token = "key" })
	var got struct {
		Acc     float64
		Choices []struct {
			Context, Continuation string
			LogProb               float64
			Greedy                bool
			Gold                  int // place of the right choice
		}
		Texts []struct{ Context, Text string }
	}
	pythontest.Ask(t, interpreter, "testdata/lm_eval_task.py", object{
		"url": f.http.URL, "key": "key", "model": f.dir, "folder": t.TempDir(),
	}, &got)
	require.Len(t, got.Choices, 8)
	sums := map[string][]float64{} // by question
	right := map[string]int{}
	for _, c := range got.Choices {
		context, whole := f.model.Tokens.Encode(c.Context), f.model.Tokens.Encode(c.Context+c.Continuation)
		out, err := f.engine.Forward(t.Context(), policy.ForwardRequest{
			Role: policy.RolePolicy, Sequences: [][]int32{whole}, Temperature: 1, Outputs: policy.OutLogProb,
		})
		require.NoError(t, err)
		var sum float64
		greedy := true
		for i := len(context); i < len(whole); i++ {
			sum += float64(out.LogProbs[0][i])
			next, err := f.engine.Generate(t.Context(), policy.GenerateRequest{
				Role: policy.RolePolicy, Prefixes: [][]int32{whole[:i]}, Streams: []uint64{1}, MaxTokens: []int{1},
			})
			require.NoError(t, err)
			greedy = greedy && next.Tokens[0][0] == whole[i]
		}
		require.InDelta(t, sum, c.LogProb, 1e-4, "%q %q", c.Context, c.Continuation)
		require.Equal(t, greedy, c.Greedy, "%q %q", c.Context, c.Continuation)
		sums[c.Context], right[c.Context] = append(sums[c.Context], sum), c.Gold
	}
	require.Len(t, sums, 3)
	correct := 0
	for context, all := range sums {
		if slices.Index(all, slices.Max(all)) == right[context] {
			correct++
		}
	}
	require.InDelta(t, float64(correct)/3, got.Acc, 1e-9)
	require.Len(t, got.Texts, 3)
	for _, s := range got.Texts {
		res, err := f.engine.Generate(t.Context(), policy.GenerateRequest{
			Role: policy.RolePolicy, Prefixes: [][]int32{f.model.Tokens.Encode(s.Context)}, Streams: []uint64{1},
			MaxTokens: []int{9}, Stop: f.model.Shape.EOS,
		})
		require.NoError(t, err)
		text, _, _ := strings.Cut(strings.TrimSuffix(f.model.Tokens.Decode(res.Tokens[0]), "<|im_end|>"), "e")
		require.Equal(t, strings.ToValidUTF8(text, "\ufffd"), s.Text)
	}
}
