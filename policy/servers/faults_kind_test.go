package servers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// lie is something wrong that a server says about a response of four tokens.
type lie struct {
	name     string
	ids, lps func([]any) []any // change the lists of a reply; nil = as they are
	// says is what the error says, "" for the kinds that have no entry of their own. heals: the kind finds what is
	// missing elsewhere.
	says map[string]string
}

const heals = "the response is right"

func at(i int, v any) func([]any) []any {
	return func(list []any) []any {
		list[i] = v
		return list
	}
}

// lies are what a server of any kind may say about a response's tokens.
var lies = []lie{
	{name: "an id out of range", ids: at(2, 40.0), says: map[string]string{"": "token 2 is 40, the vocabulary has 40",
		"llama": "probabilities of other tokens than its response", "sglang": "in the place of that of 40"}},
	{name: "a negative id", ids: at(0, -1.0), says: map[string]string{"": "token 0 is -1",
		"llama": "probabilities of other tokens than its response", "sglang": "in the place of that of -1"}},
	{name: "an id that is no number", ids: at(1, "x"), says: map[string]string{
		"": "is not the JSON that was expected"}},
	{name: "a huge id", ids: at(1, 1e12), says: map[string]string{"": "is not the JSON that was expected"}},
	{name: "an id too many", ids: func(l []any) []any { return append(l, 3.0) }, says: map[string]string{
		"": "5 tokens"}},
	{name: "an id too few", ids: func(l []any) []any { return l[:3] }, says: map[string]string{
		"": "ends after 3 of 4 tokens", "llama": "probabilities of other tokens than its response",
		"sglang": "3 tokens and 4 log-probabilities"}},
	{name: "no ids", ids: func([]any) []any { return nil }, says: map[string]string{"": "0 tokens",
		"vllm": "its reply has no token_ids", "sglang": heals}},
	{name: "a positive log-probability", lps: at(1, 0.5), says: map[string]string{
		"": "the log-probability of token 1 is 0.5"}},
	{name: "a log-probability of null", lps: at(1, nil), says: map[string]string{"": "log-probability"}},
	{name: "a log-probability of text", lps: at(1, "NaN"), says: map[string]string{
		"": "is not the JSON that was expected", "sglang": "that is no number and token"}},
	{name: "a log-probability too few", lps: func(l []any) []any { return l[:3] }, says: map[string]string{
		"": "4 tokens and 3", "llama": heals}},
	{name: "a log-probability too many", lps: func(l []any) []any { return append(l, -1.0) }, says: map[string]string{
		"": "4 tokens and 5", "llama": "probabilities of other tokens", "sglang": "4 tokens and 5"}},
}

// tell changes a kind's reply.
func (l lie) tell(kind string, reply object) {
	apply := func(list []any, by func([]any) []any) []any {
		if by == nil {
			return list
		}
		return by(list)
	}
	list := func(v any) []any {
		out, _ := v.([]any)
		return out
	}
	id := func(ids []any, i int) any {
		if i < len(ids) {
			return ids[i]
		}
		return 3.0
	}
	var lps []any
	switch kind {
	case servers.KindLlama:
		was := append([]any{}, list(reply["tokens"])...)
		for _, p := range list(reply["completion_probabilities"]) {
			lps = append(lps, p.(object)["logprob"])
		}
		entries := []any{}
		for i, v := range apply(lps, l.lps) {
			entries = append(entries, object{"id": id(was, i), "logprob": v})
		}
		reply["tokens"], reply["completion_probabilities"] = apply(list(reply["tokens"]), l.ids), entries
	case servers.KindSGLang:
		was, meta := append([]any{}, list(reply["output_ids"])...), reply["meta_info"].(object)
		for _, p := range list(meta["output_token_logprobs"]) {
			lps = append(lps, p.([]any)[0])
		}
		entries := []any{}
		for i, v := range apply(lps, l.lps) {
			entries = append(entries, []any{v, id(was, i), nil})
		}
		reply["output_ids"], meta["output_token_logprobs"] = apply(list(reply["output_ids"]), l.ids), entries
	default:
		choice := list(reply["choices"])[0].(object)
		choice["token_ids"] = apply(list(choice["token_ids"]), l.ids)
		values := choice["logprobs"].(object)
		values["token_logprobs"] = apply(list(values["token_logprobs"]), l.lps)
	}
}

// lying makes a fake tell a lie with each response of four tokens.
func (f *fake) lying(l lie) {
	f.set(func(w http.ResponseWriter, r *http.Request, n int64) bool {
		if n < 0 {
			return false
		}
		f.set(nil) // the inner request is answered honestly
		inner := httptest.NewRecorder()
		f.ServeHTTP(inner, r)
		f.lying(l)
		var reply object
		require.NoError(f.t, json.Unmarshal(inner.Body.Bytes(), &reply))
		if tokens, _ := reply["tokens"].([]any); f.kind != servers.KindLlama || len(tokens) == 4 {
			l.tell(f.kind, reply)
		}
		w.WriteHeader(inner.Code)
		require.NoError(f.t, json.NewEncoder(w).Encode(reply))
		return true
	})
}

// What a server of any kind says about tokens is checked before it is believed.
func TestLiesOfEachKind(t *testing.T) {
	dir := policyDir(t, 99)
	for _, kind := range []string{servers.KindRopewalk, servers.KindLlama, servers.KindVLLM, servers.KindSGLang,
		servers.KindTensorRT} {
		a := newFake(t, kind)
		settings := a.settings()
		settings.Parallel = 1
		s := open(t, settings)
		for _, l := range lies {
			t.Run(kind+"/"+l.name, func(t *testing.T) {
				a.set(nil)
				require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
				a.lying(l)
				g, err := s.Generate(t.Context(), rows(1, 4))
				says, own := l.says[kind]
				if !own {
					says = l.says[""]
				}
				if says == heals {
					require.NoError(t, err)
					checkModel(t, dir, rows(1, 4), g)
					return
				}
				require.ErrorIs(t, err, policy.ErrLost)
				require.ErrorContains(t, err, says)
				require.ErrorContains(t, err, kind+" "+a.url)
			})
		}
	}
}

// A reply by another model or other weights drains a server of each kind that names them.
func TestNamesOfEachKind(t *testing.T) {
	dir := policyDir(t, 99)
	for kind, c := range map[string]struct {
		change func(object)
		says   string
	}{
		servers.KindVLLM:     {func(r object) { r["model"] = "gpt" }, `by model "gpt", want m`},
		servers.KindTensorRT: {func(r object) { r["model"] = "gpt" }, `by model "gpt", want m`},
		servers.KindSGLang: {func(r object) { r["meta_info"].(object)["weight_version"] = "beef" },
			"by weights beef, want"},
		servers.KindRopewalk: {func(r object) { r["ropewalk"] = object{"weights": "beef"} }, "by weights beef, want"},
	} {
		a := newFake(t, kind)
		s := open(t, all(a)...)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		asked := a.asked.Load()
		a.set(func(w http.ResponseWriter, r *http.Request, n int64) bool {
			if n < 0 {
				return false
			}
			reply := object{"model": "m", "ropewalk": object{}, "meta_info": object{}}
			c.change(reply)
			require.NoError(t, json.NewEncoder(w).Encode(reply))
			return true
		})
		_, err := s.Generate(t.Context(), rows(1, 4))
		require.ErrorIs(t, err, policy.ErrLost, kind)
		require.ErrorIs(t, err, policy.ErrWrongVersion, kind)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, int64(1), a.asked.Load()-asked, "it is not asked again")
	}
}

// textServer answers as a server of text does.
func textServer(t *testing.T) (*fake, servers.Server, string) {
	t.Helper()
	tokens, err := tokenizer.New([]string{"<|end|>"})
	require.NoError(t, err)
	s := shape
	s.Vocab = tokens.VocabSize()
	dir := filepath.Join(t.TempDir(), "policy")
	files := map[string][]byte{"tokenizer.json": tokens.Files()["tokenizer.json"]}
	require.NoError(t, checkpoint.Init(dir, s, 1, files))
	a := newFake(t, servers.KindOpenAI)
	settings := a.settings()
	settings.Folder, settings.Model = "", "m"
	return a, settings, dir
}

// The faults of a connection and of whole replies end in the same way for each kind: the server is named with the
// reason, in bounded time and memory, and another one answers.
func TestConnectionsOfEachKind(t *testing.T) {
	kinds := []string{servers.KindLlama, servers.KindVLLM, servers.KindSGLang, servers.KindTensorRT,
		servers.KindOpenAI}
	for _, kind := range kinds {
		var bad *fake
		var settings servers.Server
		dir := policyDir(t, 99)
		if kind == servers.KindOpenAI {
			bad, settings, dir = textServer(t)
		} else {
			bad = newFake(t, kind)
			settings = bad.settings()
		}
		settings.Attempts = 2
		s := open(t, settings)
		for _, c := range faults {
			switch c.name {
			case "garbage", "partial JSON", "NaN", "throttled", "failing", "rejected", "denied", "gone", "redirect",
				"drop", "cut", "flood":
			default: // a reply in the form of ropewalk serve: TestLiesOfEachKind has the others'. A hang takes seconds
				continue
			}
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				bad.set(nil)
				require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
				bad.fault(c.answer)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := s.Generate(t.Context(), rows(1, 4))
				runtime.ReadMemStats(&after)
				require.ErrorContains(t, err, kind+" "+bad.url)
				require.ErrorContains(t, err, c.says)
				if c.is != nil {
					require.ErrorIs(t, err, c.is)
				} else {
					require.NotErrorIs(t, err, policy.ErrLost)
				}
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "bytes")
			})
		}
	}
}
