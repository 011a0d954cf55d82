package servers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/servers"
)

var shape = checkpoint.Shape{Vocab: 40, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 32,
	Positions: 128, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}

// policyDir writes a policy.
func policyDir(t testing.TB, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policy")
	require.NoError(t, checkpoint.Init(dir, shape, seed, map[string][]byte{"tokenizer.json": []byte("{}")}))
	return dir
}

// score is our own forward pass.
var score = servers.ScoreWith(func() (policy.Engine, error) { return cpu.Open(cpu.Options{Threads: 1}) })

// fake answers like a server of one kind, with the CPU engine behind it. A test can take requests away from it, and
// make it fall into a server's traps.
type fake struct {
	t       testing.TB
	kind    string
	url     string
	folder  string
	http    *httptest.Server
	engine  policy.Engine
	asked   atomic.Int64 // requests for responses and scores
	serving atomic.Int64 // now
	most    atomic.Int64 // at once
	budget  atomic.Int64 // least of the responses that it was asked for; 0 = none
	cut     atomic.Int64 // events after which streams break; 0 = never
	// before answers a request itself if it returns true; nil answers none.
	before atomic.Pointer[hook]
	// raw: log-probabilities are those of the model whatever the temperature (vllm). keeps: loads are answered with 200
	// and change nothing. eos ends every response (llama).
	raw, keeps bool
	// uncut: log-probabilities are those of the tempered distribution before top-k, top-p and min-p, as SGLang's are.
	uncut bool
	// increments: the events of a stream list new tokens alone, as SGLang's do with --incremental-streaming-output.
	// idsAlone: their ids are the new ones, and their log-probabilities all (SGLang 0.5.3).
	increments, idsAlone bool
	// tied: the embedding, and the output head that it shares, stay as they were (vllm).
	tied bool
	eos  int32
	// context is what it says about its longest sequence, cache what it says about its tokens of keys and values
	// (ropewalk).
	context, cache int

	mu      sync.Mutex
	weights string // digest or version
	read    string // the folder that vLLM has read; its prefix cache answers with the values before until it is reset
	running bool   // the model of a router
}

type hook func(w http.ResponseWriter, r *http.Request, asked int64) bool

func (f *fake) set(before hook) { f.before.Store(&before) }

func newFake(t testing.TB, kind string) *fake {
	t.Helper()
	f := &fake{t: t, kind: kind, folder: t.TempDir(), eos: -1, context: shape.Positions}
	f.uncut = kind == servers.KindSGLang
	var err error
	f.engine, err = cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	t.Cleanup(func() { f.engine.Close() })
	f.http = httptest.NewServer(f)
	f.url = f.http.URL
	t.Cleanup(f.kill)
	if kind != servers.KindLlama {
		f.load(policyDir(t, 99), "base")
	}
	return f
}

// kill ends the server and all its connections. The listener goes first: a connection accepted after the others were
// closed would go on being served.
func (f *fake) kill() {
	f.http.Listener.Close()
	f.http.CloseClientConnections()
}

func (f *fake) settings() servers.Server {
	s := servers.Server{Kind: f.kind, URL: f.url, Folder: f.folder, Attempts: 3, Seconds: 300, Parallel: 4}
	switch f.kind {
	case servers.KindLlama:
		s.Model = "policy"
	case servers.KindTensorRT:
		s.Folder = ""
	}
	return s
}

func (f *fake) load(dir, version string) error {
	if f.keeps {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.weights = version
	return f.engine.Load(context.Background(), policy.RolePolicy, dir, false)
}

// withOldEmbedding is a folder with the embedding and the head of the model that the fake has now.
func (f *fake) withOldEmbedding(dir string) string {
	now := filepath.Join(f.t.TempDir(), "now")
	_, err := f.engine.Save(context.Background(), policy.RolePolicy, now)
	require.NoError(f.t, err)
	old, err := checkpoint.Read(now, false)
	require.NoError(f.t, err)
	c, err := checkpoint.Read(dir, false)
	require.NoError(f.t, err)
	c.Weights[0].Data = old.Weights[0].Data
	c.Weights[len(c.Weights)-1].Data = old.Weights[0].Data
	mixed := filepath.Join(f.t.TempDir(), "mixed")
	_, err = checkpoint.Write(mixed, c)
	require.NoError(f.t, err)
	return mixed
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asks := strings.HasSuffix(r.URL.Path, "completions") || strings.HasSuffix(r.URL.Path, "completion") ||
		r.URL.Path == "/generate"
	n := int64(-1)
	if asks {
		n = f.asked.Add(1)
		now := f.serving.Add(1)
		defer f.serving.Add(-1)
		for most := f.most.Load(); now > most && !f.most.CompareAndSwap(most, now); most = f.most.Load() {
		}
	}
	if before := f.before.Load(); before != nil && *before != nil && (*before)(w, r, n) {
		return
	}
	var body map[string]any
	if r.Method == http.MethodPost {
		d := json.NewDecoder(r.Body)
		d.UseNumber()
		if err := d.Decode(&body); err != nil && err != io.EOF {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	reply, err := f.answer(r, body)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, err.Error())
	case reply == nil:
		http.NotFound(w, r)
	case body["stream"] == true:
		f.stream(w, body, reply.(object))
	default:
		data, err := json.Marshal(reply)
		require.NoError(f.t, err)
		_, _ = w.Write(data)
	}
}

// stream sends a response as events with a token each, or as many as SGLang is asked for. After cut of them the
// connection breaks.
func (f *fake) stream(w http.ResponseWriter, body, reply object) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	events := f.events
	if f.kind == servers.KindSGLang {
		events = func(reply object) []object {
			interval := int(number(body["sampling_params"].(object)["stream_interval"]))
			require.Positive(f.t, interval)
			return f.sglangEvents(reply, interval)
		}
	}
	for i, event := range events(reply) {
		if cut := f.cut.Load(); cut > 0 && i >= int(cut) {
			panic(http.ErrAbortHandler)
		}
		data, err := json.Marshal(event)
		require.NoError(f.t, err)
		fmt.Fprintf(w, ": a comment\ndata: %s\n\n", data)
		w.(http.Flusher).Flush()
	}
	if f.kind != servers.KindLlama {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// sglangEvents cuts a reply into events that say again what came before, as far as the fake's settings want it.
func (f *fake) sglangEvents(reply object, interval int) (out []object) {
	tokens, meta := reply["output_ids"].([]int32), reply["meta_info"].(object)
	entries := meta["output_token_logprobs"].([]any)
	for from := 0; from < len(tokens); from += interval {
		to := min(from+interval, len(tokens))
		event := object{"weight_version": meta["weight_version"], "completion_tokens": to, "finish_reason": nil,
			"output_token_logprobs": entries[:to]}
		ids := tokens[:to]
		if f.increments {
			event["output_token_logprobs"] = entries[from:to]
		}
		if f.increments || f.idsAlone {
			ids = tokens[from:to]
		}
		if to == len(tokens) {
			event["finish_reason"] = object{"type": "length", "length": to}
		}
		out = append(out, object{"text": "", "output_ids": ids, "meta_info": event})
	}
	return out
}

// events cuts a reply into one event a token, as its kind of server does.
func (f *fake) events(reply object) (out []object) {
	if f.kind == servers.KindLlama {
		tokens := reply["tokens"].([]int32)
		probs, _ := reply["completion_probabilities"].([]any)
		for i, id := range tokens {
			event := object{"tokens": []int32{id}, "stop": false}
			if i < len(probs) {
				event["completion_probabilities"] = probs[i : i+1]
			}
			out = append(out, event)
		}
		return append(out, object{"tokens": []int32{}, "stop_type": reply["stop_type"]})
	}
	choice := reply["choices"].([]any)[0].(object)
	tokens := choice["token_ids"].([]int32)
	values := choice["logprobs"].(object)["token_logprobs"].([]float32)
	for i, id := range tokens {
		part := object{"token_ids": []int32{id}, "finish_reason": nil,
			"logprobs": object{"token_logprobs": values[i : i+1]}}
		if i == len(tokens)-1 {
			part["finish_reason"] = choice["finish_reason"]
		}
		out = append(out, object{"model": reply["model"], "choices": []any{part}})
	}
	return out
}

type object = map[string]any

func (f *fake) answer(r *http.Request, body object) (any, error) {
	f.mu.Lock()
	weights := f.weights
	f.mu.Unlock()
	switch f.kind + r.URL.Path {
	case "ropewalk/v1/models":
		c := f.engine.Capabilities()
		c.Weights, c.PrefixCache = policy.WeightsReload, true
		return object{"data": []any{object{"id": "m", "max_model_len": f.context, "ropewalk": object{
			"weights": weights, "capabilities": c, "tokens": f.cache}}}}, nil
	case "ropewalk/v1/load":
		if err := f.load(body["path"].(string), body["digest"].(string)); err != nil {
			return nil, err
		}
		return object{"ropewalk": object{"weights": body["digest"]}}, nil
	case "ropewalk/v1/completions", "vllm/v1/completions":
		return f.completion(body, weights)
	case "tensorrt/v1/models":
		return object{"data": []any{object{"id": "m", "owned_by": "tensorrt_llm"}}}, nil
	case "tensorrt/version":
		return object{"version": "1.2.0"}, nil
	case "tensorrt/v1/completions":
		return f.tensorrt(body)
	case "openai/v1/completions":
		return object{"model": "m", "choices": []any{object{"text": "four", "finish_reason": "stop"}}}, nil
	case "vllm/v1/models":
		return object{"data": []any{object{"id": "m", "max_model_len": shape.Positions}}}, nil
	case "vllm/version":
		return object{"version": "0.32.0"}, nil
	case "vllm/collective_rpc":
		f.read = body["kwargs"].(object)["weights_path"].(string)
		if f.tied {
			f.read = f.withOldEmbedding(f.read)
		}
		return object{"results": []any{nil}}, nil
	case "vllm/reset_prefix_cache":
		return object{}, f.load(f.read, f.read)
	case "sglang/get_model_info":
		return object{"model_path": "m", "weight_version": weights}, nil
	case "sglang/get_server_info":
		return object{"dtype": "float32", "version": "0.5.2", "context_length": shape.Positions}, nil
	case "sglang/update_weights_from_disk":
		err := f.load(body["model_path"].(string), body["weight_version"].(string))
		return object{"success": err == nil, "message": fmt.Sprint(err)}, nil
	case "sglang/generate":
		return f.sglang(body, weights)
	case "llama/props":
		if r.URL.Query().Get("model") == "" {
			return object{"role": "router", "build_info": "b1", "default_generation_settings": object{"n_ctx": 0}}, nil
		}
		return object{"default_generation_settings": object{"n_ctx": shape.Positions + 8}}, nil
	case "llama/models":
		return f.models(), nil
	case "llama/models/unload":
		return f.unload()
	case "llama/models/load":
		return f.start()
	case "llama/completion":
		return f.llama(body)
	}
	return nil, nil
}

func ids(v any) (out []int32) {
	list, _ := v.([]any)
	for _, x := range list {
		out = append(out, int32(number(x)))
	}
	return out
}

func number(v any) float64 {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	x, _ := n.Float64()
	return x
}

func stream(v any) uint64 {
	n, _ := v.(json.Number)
	x, _ := strconv.ParseUint(string(n), 10, 64)
	return x
}

// respond generates one response, with the likeliest tokens at all positions.
func (f *fake) respond(prefix []int32, tokens int, seed uint64, from object, stop []int32) (policy.Generated, error) {
	if least := f.budget.Load(); tokens > 1 && (least == 0 || int64(tokens) < least) {
		f.budget.Store(int64(tokens))
	}
	return f.engine.Generate(context.Background(), policy.GenerateRequest{Role: policy.RolePolicy,
		Prefixes: [][]int32{prefix}, Streams: []uint64{seed}, MaxTokens: []int{tokens},
		Temperature: number(from["temperature"]), Stop: stop, Top: 20, TopTokens: tokens, Truncation: policy.Truncation{
			TopK: int(number(from["top_k"])), TopP: number(from["top_p"]), MinP: number(from["min_p"])}})
}

// forward scores a sequence at temperature 1.
func (f *fake) forward(seq []int32) []float32 { return f.forwardAt(seq, 1) }

func (f *fake) forwardAt(seq []int32, temperature float64) []float32 {
	out, err := f.engine.Forward(context.Background(), policy.ForwardRequest{Role: policy.RolePolicy,
		Sequences: [][]int32{seq}, Temperature: temperature, Outputs: policy.OutLogProb})
	require.NoError(f.t, err)
	return out.LogProbs[0]
}

// top2 are the log-probabilities of the two likeliest tokens.
func (f *fake) top2(prefix []int32, temperature float64) (out []float32) {
	var all []float64
	for v := range shape.Vocab {
		all = append(all, float64(f.forward(append(slices.Clone(prefix), int32(v)))[len(prefix)])/temperature)
	}
	slices.Sort(all)
	slices.Reverse(all)
	sum := 0.0
	for _, v := range all {
		sum += math.Exp(v)
	}
	return []float32{float32(all[0] - math.Log(sum)), float32(all[1] - math.Log(sum))}
}

func (f *fake) completion(body object, weights string) (any, error) {
	prompt, tokens := ids(body["prompt"]), int(number(body["max_tokens"]))
	choice := object{"finish_reason": "stop"}
	reply := object{"model": "m", "choices": []any{choice}, "ropewalk": object{"weights": weights}}
	if body["echo"] == true {
		lps := []any{nil}
		for _, v := range f.forward(prompt)[1:] {
			lps = append(lps, v)
		}
		choice["logprobs"] = object{"token_logprobs": lps}
		return reply, nil
	}
	if _, ok := body["prompt_logprobs"]; ok {
		entries := []any{nil}
		for i, v := range f.forward(prompt)[1:] {
			entries = append(entries, object{fmt.Sprint(prompt[i+1]): object{"logprob": v}})
		}
		choice["prompt_logprobs"] = entries
		return reply, nil
	}
	g, err := f.respond(prompt, tokens, stream(body["seed"]), body, ids(body["stop_token_ids"]))
	if err != nil {
		return nil, err
	}
	lps := object{"token_logprobs": f.shown(prompt, g, number(body["temperature"]))}
	if number(body["logprobs"]) == 2 {
		t := number(body["temperature"])
		if f.raw {
			t = 1
		}
		top := f.top2(prompt, t)
		lps["top_logprobs"] = []any{object{"a": top[0], "b": top[1]}}
	}
	if body["return_tokens_as_token_ids"] == true && !f.raw {
		lps["top_logprobs"] = likeliestByName(g, int(number(body["logprobs"])))
	}
	choice["token_ids"], choice["logprobs"], choice["entropies"] = g.Tokens[0], lps, g.Entropies[0]
	return reply, nil
}

// likeliestByName are the n likeliest tokens of each position in OpenAI's form, with the token that was sampled.
func likeliestByName(g policy.Generated, n int) (out []any) {
	for i, top := range g.Top[0] {
		all := object{}
		for k, v := range top[:min(n, len(top))] {
			all[fmt.Sprint("token_id:", k)] = v
		}
		if last := top[min(n, len(top))-1]; g.LogProbs[0][i] < last {
			all["sampled"] = g.LogProbs[0][i]
		}
		out = append(out, all)
	}
	return out
}

// listed are the n likeliest tokens of each position in SGLang's form, or with fields in llama-server's.
func listed(top []float32, n int, fields bool) (out []any) {
	for k, v := range top[:min(n, len(top))] {
		if fields {
			out = append(out, object{"id": k, "logprob": v})
			continue
		}
		out = append(out, []any{v, k, nil})
	}
	return out
}

// shown are a response's log-probabilities as the server gives them.
func (f *fake) shown(prompt []int32, g policy.Generated, temperature float64) []float32 {
	if f.raw || temperature == 0 {
		temperature = 1
	}
	if !f.raw && !f.uncut {
		return g.LogProbs[0]
	}
	return f.forwardAt(append(slices.Clone(prompt), g.Tokens[0]...), temperature)[len(prompt):]
}

func (f *fake) sglang(body object, weights string) (any, error) {
	prompt, p := ids(body["input_ids"]), body["sampling_params"].(object)
	g, err := f.respond(prompt, int(number(p["max_new_tokens"])), stream(p["sampling_seed"]), p,
		ids(p["stop_token_ids"]))
	if err != nil {
		return nil, err
	}
	meta := object{"weight_version": weights}
	shown := f.shown(prompt, g, number(p["temperature"]))
	var out []any
	for i, id := range g.Tokens[0] {
		out = append(out, []any{shown[i], id, nil})
	}
	meta["output_token_logprobs"] = out
	if _, ok := body["logprob_start_len"]; ok {
		in := []any{[]any{nil, prompt[0], nil}}
		for i, v := range f.forward(prompt)[1:] {
			in = append(in, []any{v, prompt[i+1], nil})
		}
		meta["input_token_logprobs"] = in
	}
	if n := int(number(body["top_logprobs_num"])); n > 2 {
		tops := []any{}
		for _, top := range g.Top[0] {
			tops = append(tops, listed(top, n, false))
		}
		meta["output_top_logprobs"] = tops
	} else if n == 2 {
		t := number(p["temperature"])
		if f.raw {
			t = 1
		}
		top := f.top2(prompt, t)
		meta["output_top_logprobs"] = []any{[]any{[]any{top[0], 0, nil}, []any{top[1], 1, nil}}}
	}
	return object{"output_ids": g.Tokens[0], "meta_info": meta}, nil
}

// tensorrt answers like trtllm-serve: it refuses fields that it does not know, gives ids only in the place of text, and
// the stop token only if it is asked to.
func (f *fake) tensorrt(body object) (any, error) {
	for name := range body {
		if !slices.Contains([]string{"model", "prompt", "logprobs", "max_tokens", "n", "seed", "temperature", "top_p",
			"top_k", "min_p", "stream", "stop_token_ids", "include_stop_str_in_output", "ignore_eos", "detokenize",
			"add_special_tokens"}, name) {
			return nil, fmt.Errorf("%s: extra inputs are not permitted", name)
		}
	}
	out, err := f.completion(body, "")
	if err != nil {
		return nil, err
	}
	reply := out.(object)
	delete(reply, "ropewalk")
	choice := reply["choices"].([]any)[0].(object)
	delete(choice, "entropies")
	if number(body["logprobs"]) > 1 {
		t := number(body["temperature"])
		if f.raw {
			t = 1
		}
		top := f.top2(ids(body["prompt"]), t)
		choice["logprobs"].(object)["top_logprobs"] = []any{object{"a": top[0], "b": top[1]}}
	} else if number(body["logprobs"]) == 0 {
		delete(choice, "logprobs")
	}
	if body["detokenize"] != false {
		choice["token_ids"] = nil
	}
	if body["include_stop_str_in_output"] != true {
		return nil, fmt.Errorf("the stop token would be missing")
	}
	return reply, nil
}

// The router of llama-server.

func (f *fake) models() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	data := []any{}
	if _, err := os.Stat(filepath.Join(f.folder, "policy.gguf")); err == nil {
		status := "unloaded"
		if f.running {
			status = "loaded"
		}
		data = append(data, object{"id": "policy", "status": object{"value": status}})
	}
	return object{"data": data}
}

func (f *fake) unload() (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.running {
		return nil, fmt.Errorf("model is not running")
	}
	f.running = false
	return object{"success": true}, nil
}

func (f *fake) start() (any, error) {
	file, err := gguf.Open(filepath.Join(f.folder, "policy.gguf"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c, err := file.Checkpoint()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(f.t.TempDir(), "from-gguf")
	if _, err := checkpoint.Write(dir, c); err != nil {
		return nil, err
	}
	if err := f.load(dir, dir); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = true
	return object{"success": true}, nil
}

// llama answers /completion with the server's habits: it ends at its own end token, knows stop texts alone, and leaves
// the probabilities of stop texts out.
func (f *fake) llama(body object) (any, error) {
	prompt, tokens := ids(body["prompt"]), int(number(body["n_predict"]))
	if bias, ok := body["logit_bias"].([]any); ok {
		return f.biased(body, prompt, ids(bias[0])[0])
	}
	var stop []int32
	texts, _ := body["stop"].([]any)
	for _, text := range texts {
		n, err := strconv.Atoi(strings.Trim(text.(string), "<>"))
		if err != nil {
			return nil, err
		}
		stop = append(stop, int32(n))
	}
	all := stop
	if f.eos >= 0 {
		all = append(slices.Clone(stop), f.eos)
	}
	g, err := f.respond(prompt, tokens, stream(body["seed"]), body, all)
	if err != nil {
		return nil, err
	}
	out, shown := g.Tokens[0], g.LogProbs[0]
	kind, keep := "limit", len(out)
	if last := out[len(out)-1]; last == f.eos {
		kind = "eos"
	} else if slices.Contains(stop, last) {
		kind, keep = "word", len(out)-1
	}
	var probs []any
	for i := range keep {
		p := object{"id": out[i], "logprob": shown[i],
			"top_logprobs": listed(g.Top[0][i], int(number(body["n_probs"])), true)}
		if body["post_sampling_probs"] == true {
			p = object{"id": out[i], "prob": math.Exp(float64(shown[i]))}
		}
		probs = append(probs, p)
	}
	return object{"tokens": out, "stop_type": kind, "completion_probabilities": probs}, nil
}

func (f *fake) biased(body object, prompt []int32, id int32) (any, error) {
	p := object{"id": id, "logprob": f.forward(append(slices.Clone(prompt), id))[len(prompt)]}
	if number(body["n_probs"]) > 1 {
		var all []any
		for v := range int32(shape.Vocab) {
			all = append(all, object{"id": v, "logprob": f.forward(append(slices.Clone(prompt), v))[len(prompt)]})
		}
		p["top_logprobs"] = all
	}
	return object{"tokens": []int32{id}, "stop_type": "limit", "completion_probabilities": []any{p}}, nil
}
