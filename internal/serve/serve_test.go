package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout"
)

// gpt2 is the pattern of the published model's tokenizer.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// template is the published model's chat template.
const template = `{%- if tools %}{{ '<|im_start|>system\nTools: ' }}{% for t in tools %}{{ t | tojson }}{% endfor %}` +
	`{{ '<|im_end|>\n' }}{% endif %}{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}` +
	`{%- if m.content %}{{ m.content }}{% endif %}{% for c in m.tool_calls or [] %}{{ '<tool_call>' }}` +
	`{{- c.function | tojson }}{{ '</tool_call>' }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}{{ note or '' }}`

// publishedFiles are the small files of a model as others publish it.
func publishedFiles(t testing.TB) (files map[string][]byte, size int) {
	t.Helper()
	text := strings.Repeat("the answer to the question is a number of tokens and not a word\n", 4)
	own, err := tokenizer.Train([]string{"<|im_start|>", "<|im_end|>"}, []string{text}, 300)
	require.NoError(t, err)
	symbols, plain := own.Symbols()
	v := tokenizer.Vocabulary{Tokens: symbols, Pattern: gpt2}
	for id := plain; id < len(symbols); id++ {
		v.Added = append(v.Added, int32(id))
	}
	for _, m := range own.Merges() {
		a, b, _ := strings.Cut(m, " ")
		v.Merges = append(v.Merges, [2]string{a, b})
	}
	config, err := json.Marshal(map[string]any{"chat_template": template, "eos_token": "<|im_end|>",
		"tokenizer_class": "PreTrainedTokenizerFast"})
	require.NoError(t, err)
	return map[string][]byte{"tokenizer.json": v.JSON(), "tokenizer_config.json": config}, len(symbols)
}

// published writes a model in the layout in which others publish them, and own one as runs make them.
func published(t testing.TB, seed uint64) string {
	files, size := publishedFiles(t)
	return writeModel(t, files, size, int32(size-1), seed)
}

func own(t testing.TB) string {
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	end, ok := tokens.ID(tokenizer.EndOfTurn)
	require.True(t, ok)
	return writeModel(t, tokens.Files(), tokens.VocabSize(), end, 3)
}

func writeModel(t testing.TB, files map[string][]byte, size int, end int32, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	c, err := checkpoint.Fresh(checkpoint.Shape{
		Vocab: size, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 48, Positions: 512,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1, EOS: []int32{end},
	}, seed)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 2))
	for _, w := range c.Weights {
		for i := range w.Data {
			w.Data[i] += float32(0.15 * rng.NormFloat64()) // so that distributions are neither flat nor certain
		}
	}
	c.Extra = files
	_, err = checkpoint.Write(dir, c)
	require.NoError(t, err)
	return dir
}

// fixture is a server with its engine.
type fixture struct {
	t      testing.TB
	server *serve.Server
	engine policy.Engine
	model  *serve.Model
	http   *httptest.Server
	dir    string
}

func start(t testing.TB, dir string, change func(*serve.Options)) *fixture {
	t.Helper()
	e, err := cpu.Open(cpu.Options{Threads: 2})
	require.NoError(t, err)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
	m, err := serve.ReadModel(dir)
	require.NoError(t, err)
	o := serve.Options{Engine: e.(policy.Batcher), Model: m, Name: "tiny", Rows: 8, Tokens: 4096}
	if change != nil {
		change(&o)
	}
	s, err := serve.New(o)
	require.NoError(t, err)
	f := &fixture{t: t, server: s, engine: e, model: m, http: httptest.NewServer(s.Handler()), dir: dir}
	t.Cleanup(func() {
		f.http.Close()
		s.Close()
		require.NoError(t, e.Close())
	})
	return f
}

// object is decoded JSON.
type object = map[string]any

// post sends a body, which is JSON or made of a value, and returns the status and the answer.
func (f *fixture) post(path string, body any) (int, object) {
	f.t.Helper()
	response := f.send(f.t.Context(), path, body)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(f.t, err)
	var out object
	require.NoError(f.t, json.Unmarshal(data, &out), "%s", data)
	return response.StatusCode, out
}

func (f *fixture) send(ctx context.Context, path string, body any) *http.Response {
	f.t.Helper()
	response, err := f.try(ctx, path, body)
	require.NoError(f.t, err)
	return response
}

func (f *fixture) try(ctx context.Context, path string, body any) (*http.Response, error) {
	data, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		data = string(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.http.URL+path, strings.NewReader(data))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return f.http.Client().Do(r)
}

// get reads a page.
func (f *fixture) get(path string) (int, string) {
	f.t.Helper()
	response, err := f.http.Client().Get(f.http.URL + path)
	require.NoError(f.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(f.t, err)
	return response.StatusCode, string(data)
}

// stream reads the events of an answer, which must end with [DONE].
func (f *fixture) stream(path string, body object) (chunks []object) {
	f.t.Helper()
	body["stream"] = true
	response := f.send(f.t.Context(), path, body)
	defer response.Body.Close()
	require.Equal(f.t, http.StatusOK, response.StatusCode)
	require.Equal(f.t, "text/event-stream", response.Header.Get("Content-Type"))
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		require.True(f.t, ok, line)
		if data == "[DONE]" {
			require.False(f.t, lines.Scan() && lines.Text() != "", "something follows the end")
			return chunks
		}
		var chunk object
		require.NoError(f.t, json.Unmarshal([]byte(data), &chunk))
		chunks = append(chunks, chunk)
	}
	require.NoError(f.t, lines.Err())
	require.Fail(f.t, "the stream has no end")
	return nil
}

// choices returns the choices of an answer.
func choices(answer object) (out []object) {
	for _, c := range answer["choices"].([]any) {
		out = append(out, c.(object))
	}
	return out
}

func floats(v any) (out []float32) {
	for _, x := range v.([]any) {
		out = append(out, float32(x.(float64)))
	}
	return out
}

func ids(v any) (out []int32) {
	for _, x := range v.([]any) {
		out = append(out, int32(x.(float64)))
	}
	return out
}

// TestCompletionsEqualGenerate: clients that ask at the same time get the tokens, log-probabilities and entropies that
// Generate returns for their prompts and seeds.
func TestCompletionsEqualGenerate(t *testing.T) {
	for name, dir := range map[string]string{"published": published(t, 1), "own": own(t)} {
		t.Run(name, func(t *testing.T) {
			f := start(t, dir, nil)
			var wg sync.WaitGroup
			for i := range 24 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(i), 1))
					prompt := f.model.Tokens.Encode("the answer to the question" + strings.Repeat(" is", rng.IntN(90)))
					req := policy.GenerateRequest{
						Role: policy.RolePolicy, Prefixes: [][]int32{prompt}, Streams: []uint64{rng.Uint64()},
						MaxTokens: []int{1 + rng.IntN(40)}, Temperature: float64(rng.IntN(4)) / 2,
						Stop: f.model.Shape.EOS,
					}
					body := object{
						"model": "tiny", "prompt": prompt, "seed": req.Streams[0], "max_tokens": req.MaxTokens[0],
						"temperature": req.Temperature, "logprobs": 0, "return_token_ids": true,
						"return_entropies": true,
					}
					if rng.IntN(2) == 0 {
						req.Truncation = policy.Truncation{TopK: 7, TopP: 0.9, MinP: 0.01}
						body["top_k"], body["top_p"], body["min_p"] = 7, 0.9, 0.01
					}
					want, err := f.engine.Generate(t.Context(), req)
					require.NoError(t, err)
					status, answer := f.post("/v1/completions", body)
					require.Equal(t, http.StatusOK, status, "%v", answer)
					require.Equal(t, "tiny", answer["model"])
					c := choices(answer)[0]
					require.Equal(t, want.Tokens[0], ids(c["token_ids"]))
					require.Equal(t, prompt, ids(c["prompt_token_ids"]))
					require.InDeltaSlice(t, want.LogProbs[0], floats(c["logprobs"].(object)["token_logprobs"]), 1e-5)
					require.InDeltaSlice(t, want.Entropies[0], floats(c["entropies"]), 1e-5)
					require.Equal(t, string(want.Finish[0]), c["finish_reason"])
					usage := answer["usage"].(object)
					require.EqualValues(t, len(prompt), usage["prompt_tokens"])
					require.EqualValues(t, len(want.Tokens[0]), usage["completion_tokens"])
				})
			}
			wg.Wait()
			require.Eventually(t, func() bool { return f.server.Usage().Rows == 0 }, 5*time.Minute, time.Millisecond)
			require.Positive(t, f.server.Usage().ReusedTokens)
		})
	}
}

// TestChoices: several prompts with several choices each come in order. The first choice of a prompt has the seed
// itself, choices differ, and a list of seeds gives each choice its own.
func TestChoices(t *testing.T) {
	f := start(t, published(t, 1), nil)
	body := object{
		"prompt": []any{"the answer", []int{5, 6, 7}}, "n": 3, "seed": 9, "max_tokens": 12, "return_token_ids": true,
	}
	status, answer := f.post("/v1/completions", body)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	all := choices(answer)
	require.Len(t, all, 6)
	for i, c := range all {
		require.EqualValues(t, i, c["index"])
	}
	require.Equal(t, []int32{5, 6, 7}, ids(all[3]["prompt_token_ids"]))
	require.NotEqual(t, all[0]["token_ids"], all[1]["token_ids"])
	_, again := f.post("/v1/completions", body)
	require.Equal(t, answer["choices"], again["choices"])
	_, alone := f.post("/v1/completions", object{
		"prompt": []int{5, 6, 7}, "seed": 9, "max_tokens": 12, "return_token_ids": true,
	})
	require.Equal(t, all[3]["token_ids"], choices(alone)[0]["token_ids"])
	body["seed"] = []uint64{1, 2, 3, 4, 5, 1<<64 - 1}
	_, seeded := f.post("/v1/completions", body)
	_, last := f.post("/v1/completions", object{
		"prompt": []int{5, 6, 7}, "seed": uint64(1<<64 - 1), "max_tokens": 12, "return_token_ids": true,
	})
	require.Equal(t, choices(seeded)[5]["token_ids"], choices(last)[0]["token_ids"])
}

// TestStreamsEqualWholes: the sum of a stream's chunks is the answer that comes whole.
func TestStreamsEqualWholes(t *testing.T) {
	f := start(t, published(t, 1), nil)
	for seed := range 8 {
		body := object{
			"prompt": []string{"the question", "a number of"}, "n": 2, "max_tokens": 40, "seed": seed, "logprobs": 2,
			"return_token_ids": true, "return_entropies": true, "echo": seed%2 == 0, "stop": []string{"e", "\ufffd"},
			"include_stop_str_in_output": seed%3 == 0,
		}
		_, whole := f.post("/v1/completions", body)
		body["stream_options"] = object{"include_usage": true}
		chunks := f.stream("/v1/completions", body)
		last := chunks[len(chunks)-1]
		require.Equal(t, whole["usage"].(object)["total_tokens"], last["usage"].(object)["total_tokens"])
		sum := map[int]object{}
		for _, chunk := range chunks[:len(chunks)-1] {
			require.NotContains(t, chunk, "usage")
			require.Equal(t, whole["ropewalk"], chunk["ropewalk"])
			for _, c := range choices(chunk) {
				i := int(c["index"].(float64))
				sum[i] = added(sum[i], c).(object)
			}
		}
		for i, c := range choices(whole) {
			require.Equal(t, c, sum[i], "choice %d of seed %d", i, seed)
		}
	}
}

// added is the sum of two values of a stream: texts and lists follow each other, and null adds nothing.
func added(a, b any) any {
	switch b := b.(type) {
	case nil:
		return a
	case string:
		if before, ok := a.(string); ok {
			return before + b
		}
	case []any:
		if before, ok := a.([]any); ok {
			return append(before, b...)
		}
	case object:
		out := object{}
		before, _ := a.(object)
		for name, v := range before {
			out[name] = v
		}
		for name, v := range b {
			out[name] = added(out[name], v)
		}
		return out
	}
	return b
}

// TestScores: a repeated prompt has the log-probabilities of the engine's forward pass, in the form that lm-eval reads.
func TestScores(t *testing.T) {
	f := start(t, published(t, 1), nil)
	prompt := f.model.Tokens.Encode("the answer to the question is a number of tokens \U0001F600 é")
	out, err := f.engine.Forward(t.Context(), policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: [][]int32{prompt}, Temperature: 1, Outputs: policy.OutLogProb,
	})
	require.NoError(t, err)
	for _, budget := range []int{0, 1, 5} {
		status, answer := f.post("/v1/completions", object{
			"prompt": prompt, "echo": true, "logprobs": 1, "max_tokens": budget, "temperature": 0, "seed": 1234,
		})
		require.Equal(t, http.StatusOK, status, "%v", answer)
		c := choices(answer)[0]
		l := c["logprobs"].(object)
		text := []rune(c["text"].(string))
		require.True(t, strings.HasPrefix(c["text"].(string), f.model.Tokens.Decode(prompt)))
		logProbs, tops := l["token_logprobs"].([]any), l["top_logprobs"].([]any)
		tokens, offsets := l["tokens"].([]any), l["text_offset"].([]any)
		require.Len(t, logProbs, len(prompt)+budget)
		require.Nil(t, logProbs[0])
		require.Nil(t, tops[0])
		require.InDeltaSlice(t, out.LogProbs[0][1:], floats(logProbs[1:len(prompt)]), 1e-5)
		for i := 1; i < len(logProbs); i++ {
			top := tops[i].(object)
			require.Equal(t, logProbs[i], top[tokens[i].(string)], "the token itself is named")
			for _, other := range top {
				require.LessOrEqual(t, other.(float64), 0.0)
			}
			require.LessOrEqual(t, len(top), 2)
			if i >= len(prompt) { // greedy
				require.Len(t, top, 1)
			}
		}
		for i := range prompt {
			name, at := tokens[i].(string), int(offsets[i].(float64))
			if !strings.HasPrefix(name, "bytes:") {
				require.True(t, strings.HasPrefix(string(text[at:]), name), "%q at %d of %q", name, at, string(text))
			}
		}
	}
	_, answer := f.post("/v1/completions", object{
		"prompt": prompt, "logprobs": 3, "max_tokens": 2, "return_tokens_as_token_ids": true, "return_token_ids": true,
	})
	c := choices(answer)[0]
	require.Regexp(t, `^token_id:\d+$`, c["logprobs"].(object)["tokens"].([]any)[0])
}

// TestChat: the prompt of a chat is what the model's template renders, and the reply is what a completion of it is.
func TestChat(t *testing.T) {
	f := start(t, published(t, 1), nil)
	tools := []any{object{"type": "function", "function": object{"name": "add", "parameters": object{}}}}
	messages := []any{
		object{"role": "developer", "content": "Be brief."},
		object{"role": "user", "content": []any{object{"type": "text", "text": "1 + 1?"}}},
		object{"role": "assistant", "content": nil, "tool_calls": []any{object{"id": "a", "type": "function",
			"function": object{"name": "add", "arguments": `{"b": 1, "a": 1}`}}}},
		object{"role": "tool", "tool_call_id": "a", "content": "2 <|im_end|>"},
	}
	body := object{
		"model": "tiny", "messages": messages, "tools": tools, "max_tokens": 9, "seed": 4, "return_token_ids": true,
		"logprobs": true, "top_logprobs": 2, "chat_template_kwargs": object{"note": "!"},
	}
	status, answer := f.post("/v1/chat/completions", body)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	prompt := ids(answer["prompt_token_ids"])
	const want = "<|im_start|>system\n" +
		`Tools: {"function": {"name": "add", "parameters": {}}, "type": "function"}` +
		"<|im_end|>\n<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n1 + 1?<|im_end|>\n" +
		"<|im_start|>assistant\n" + `<tool_call>{"arguments": {"b": 1, "a": 1}, "name": "add"}</tool_call>` +
		"<|im_end|>\n" +
		"<|im_start|>tool\n2 < |im_end|><|im_end|>\n<|im_start|>assistant\n!"
	require.Equal(t, want, f.model.Tokens.Decode(prompt))
	require.Equal(t, f.model.Tokens.Encode(want), prompt)

	_, completion := f.post("/v1/completions", object{
		"prompt": prompt, "max_tokens": 9, "seed": 4, "return_token_ids": true,
	})
	c := choices(answer)[0]
	require.Equal(t, choices(completion)[0]["token_ids"], c["token_ids"])
	require.Equal(t, choices(completion)[0]["text"], c["message"].(object)["content"])
	for _, token := range c["logprobs"].(object)["content"].([]any) {
		require.Len(t, token.(object)["top_logprobs"], 2)
		require.NotNil(t, token.(object)["bytes"])
	}
	var content string
	for i, chunk := range f.stream("/v1/chat/completions", body) {
		part := choices(chunk)[0]["delta"].(object)
		require.Equal(t, i == 0, part["role"] == "assistant")
		text, _ := part["content"].(string)
		content += text
	}
	require.Equal(t, c["message"].(object)["content"], content)
}

// TestCancellation: a client that goes away frees its row, and others do not notice.
func TestCancellation(t *testing.T) {
	f := start(t, published(t, 1), func(o *serve.Options) { o.Rows = 2 })
	long := object{"prompt": "the", "max_tokens": 500, "ignore_eos": true, "seed": 1, "return_token_ids": true}
	_, want := f.post("/v1/completions", long)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 6 { // more than there are rows: some are cancelled in the queue
		wg.Go(func() {
			response, err := f.try(ctx, "/v1/completions", long)
			if err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
	require.Eventually(t, func() bool { return f.server.Usage().Rows == 2 }, 5*time.Minute, time.Millisecond)
	cancel()
	wg.Wait()
	_, got := f.post("/v1/completions", long)
	require.Equal(t, want["choices"], got["choices"])
	require.Eventually(t, func() bool { return f.server.Usage().Rows == 0 && f.server.Usage().Held == 0 },
		5*time.Minute, time.Millisecond)
	_, page := f.get("/metrics")
	require.Contains(t, page, "ropewalk_serve_queued_rows 0\n")
}

// TestStopTexts: a stop text ends the response before it, and the row leaves the batch.
func TestStopTexts(t *testing.T) {
	f := start(t, published(t, 1), nil)
	base := object{"prompt": "the", "max_tokens": 60, "seed": 5, "ignore_eos": true, "return_token_ids": true}
	_, answer := f.post("/v1/completions", base)
	whole := choices(answer)[0]["text"].(string)
	runes := []rune(strings.ReplaceAll(whole, "\ufffd", ""))
	stop := string(runes[len(runes)/2])
	base["stop"] = stop
	_, answer = f.post("/v1/completions", base)
	c := choices(answer)[0]
	before, _, found := strings.Cut(whole, stop)
	require.True(t, found)
	require.Equal(t, before, c["text"])
	require.Equal(t, "stop", c["finish_reason"])
	require.Equal(t, stop, c["stop_reason"])
	require.Less(t, len(c["token_ids"].([]any)), 60)
	require.Eventually(t, func() bool { return f.server.Usage().Rows == 0 }, 5*time.Minute, time.Millisecond)
	delete(base, "stop")
	base["stop_token_ids"] = c["token_ids"].([]any)[2:3]
	_, answer = f.post("/v1/completions", base)
	require.Equal(t, base["stop_token_ids"].([]any)[0], choices(answer)[0]["stop_reason"])
	require.Equal(t, "stop", choices(answer)[0]["finish_reason"])
}

// TestModelsAndMetrics: what a server says about itself.
func TestModelsAndMetrics(t *testing.T) {
	f := start(t, published(t, 1), func(o *serve.Options) { o.Context = 100 })
	digest, err := checkpoint.Digest(f.dir)
	require.NoError(t, err)
	status, page := f.get("/v1/models")
	require.Equal(t, http.StatusOK, status)
	var list struct {
		Data []struct {
			ID       string `json:"id"`
			Length   int    `json:"max_model_len"`
			Ropewalk struct {
				Weights      string
				Capabilities policy.Capabilities
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(page), &list))
	require.Len(t, list.Data, 1)
	require.Equal(t, "tiny", list.Data[0].ID)
	require.Equal(t, 100, list.Data[0].Length)
	require.Equal(t, digest, list.Data[0].Ropewalk.Weights)
	can := list.Data[0].Ropewalk.Capabilities
	require.NoError(t, can.Validate())
	require.True(t, can.TokenIDs && can.LogProbs && can.RowSeeds && can.PrefixCache)
	require.Equal(t, policy.WeightsFixed, can.Weights)
	status, _ = f.get("/v1/models/tiny")
	require.Equal(t, http.StatusOK, status)
	status, _ = f.get("/v1/models/other")
	require.Equal(t, http.StatusNotFound, status)
	status, page = f.get("/health")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status": "ok"}`, page)
	_, answer := f.post("/v1/completions", object{"prompt": "the", "max_tokens": 3, "ignore_eos": true})
	require.Equal(t, digest, answer["ropewalk"].(object)["weights"])
	f.post("/v1/completions", "{")
	require.Eventually(t, func() bool {
		_, page = f.get("/metrics")
		return strings.Contains(page, "ropewalk_serve_generated_tokens_total 3\n")
	}, 5*time.Minute, time.Millisecond)
	for _, line := range []string{
		`ropewalk_serve_requests_total{path="/v1/completions",status="200"} 1`,
		`ropewalk_serve_requests_total{path="/v1/completions",status="400"} 1`,
		"ropewalk_serve_time_to_first_token_seconds_count 1", "ropewalk_serve_rows 0", "ropewalk_serve_kv_tokens 4096",
	} {
		require.Contains(t, page, line+"\n")
	}
	require.Eventually(t, func() bool {
		_, page = f.get("/metrics")
		return strings.Contains(page, `ropewalk_serve_requests_total{path="/metrics",status="200"}`)
	}, time.Minute, time.Millisecond, "an answer without a call of WriteHeader has status 200")
	require.NotContains(t, page, `status="499"`)
}

// TestServeDrains: a server that is told to end finishes what it has begun and accepts nothing more.
func TestServeDrains(t *testing.T) {
	f := start(t, published(t, 1), nil)
	l := newListener(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.server.Serve(ctx, l, nil, time.Minute) }()
	body, _ := json.Marshal(object{"prompt": "the", "max_tokens": 400, "ignore_eos": true, "return_token_ids": true})
	answer := make(chan []byte, 1)
	go func() {
		url := "http://" + l.Addr().String() + "/v1/completions"
		response, err := http.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			answer <- []byte(err.Error())
			return
		}
		defer response.Body.Close()
		data, _ := io.ReadAll(response.Body)
		answer <- data
	}()
	begun := func() bool { return f.server.Usage().Rows == 1 || len(answer) == 1 } // it may end between two looks
	require.Eventually(t, begun, 5*time.Minute, 100*time.Microsecond)
	cancel()
	var got object
	require.NoError(t, json.Unmarshal(<-answer, &got))
	require.Len(t, choices(got)[0]["token_ids"], 400)
	require.NoError(t, <-ended)
	_, err := http.Get("http://" + l.Addr().String() + "/health")
	require.Error(t, err)
	status, _ := f.get("/health")
	require.Equal(t, http.StatusServiceUnavailable, status)
}
