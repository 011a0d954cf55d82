package servers_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/servers"
)

var streaming = []string{servers.KindVLLM, servers.KindLlama, servers.KindSGLang, servers.KindTensorRT}

// A streamed response has the tokens and log-probabilities of one that comes in one piece.
func TestStreams(t *testing.T) {
	dir := policyDir(t, 99)
	for _, kind := range streaming {
		a := newFake(t, kind)
		a.eos = 9 // llama-server ends there, and the response goes on
		whole, parts := a.settings(), a.settings()
		parts.StreamFrom = 5
		var want []policy.Generated
		for _, settings := range []servers.Server{whole, parts} {
			s := open(t, settings)
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
			for _, temperature := range []float64{1, 0.7, 0} {
				req := rows(12, 20)
				req.Temperature = temperature
				g, err := s.Generate(t.Context(), req)
				require.NoError(t, err)
				want = append(want, g)
			}
		}
		require.Equal(t, want[:3], want[3:], kind)
	}
}

// SGLang's events list new tokens, or all tokens again, as the server's version and settings want it.
func TestEventsThatRepeat(t *testing.T) {
	dir := policyDir(t, 99)
	for name, set := range map[string]func(*fake){
		"all is repeated":                func(*fake) {},
		"log-probabilities are repeated": func(f *fake) { f.idsAlone = true },
		"nothing is repeated":            func(f *fake) { f.increments = true },
	} {
		t.Run(name, func(t *testing.T) {
			a := newFake(t, servers.KindSGLang)
			set(a)
			settings := a.settings()
			settings.StreamFrom = 5
			s := open(t, settings)
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
			for _, budget := range []int{20, 100} { // an event for each token, or for several
				g, err := s.Generate(t.Context(), rows(3, budget))
				require.NoError(t, err)
				checkModel(t, dir, rows(3, budget), g)
			}
		})
	}
}

// A server that is lost in the middle of streams loses no token that has come: another one continues after them, and
// every log-probability is that of the model.
func TestLostInTheMiddleOfStreams(t *testing.T) {
	dir := policyDir(t, 99)
	for _, kind := range streaming {
		a, b := newFake(t, kind), newFake(t, kind)
		list := all(a, b)
		list[0].StreamFrom, list[1].StreamFrom = 5, 5
		s := open(t, list...)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		a.cut.Store(9)
		b.budget.Store(0) // of what it was asked for before
		asked := a.asked.Load()
		g, err := s.Generate(t.Context(), rows(20, 30))
		require.NoError(t, err)
		require.Greater(t, a.asked.Load(), asked, kind)
		require.Less(t, b.budget.Load(), int64(30), "the other server is asked for the rest of a response: %s", kind)
		checkModel(t, dir, rows(20, 30), g)
		require.ErrorContains(t, s.Away(), a.url, kind)
	}
}

// The tokens that have come when the last server is lost are kept: the caller's next request continues after them.
func TestBeginningsAreKept(t *testing.T) {
	dir := policyDir(t, 99)
	for _, kind := range streaming {
		a := newFake(t, kind)
		settings := a.settings()
		settings.StreamFrom = 5
		s := open(t, settings)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		a.cut.Store(4)
		_, err := s.Generate(t.Context(), rows(1, 30))
		require.ErrorIs(t, err, policy.ErrLost)
		a.cut.Store(0)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		a.budget.Store(0) // of what it was asked for before
		g, err := s.Generate(t.Context(), rows(1, 30))
		require.NoError(t, err)
		require.Len(t, g.Tokens[0], 30)
		checkModel(t, dir, rows(1, 30), g)
		require.Equal(t, int64(30-3*4), a.budget.Load(), "three attempts have brought four tokens each: %s", kind)
	}
}

// A stream that is no stream, is cut, lies, or names an error is not believed.
func TestBadStreams(t *testing.T) {
	dir := policyDir(t, 99)
	event := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, text)
		}
	}
	good := `data: {"model":"m","choices":[{"token_ids":[1],"logprobs":{"token_logprobs":[-1]}}]}` + "\n\n"
	bad := func(from, to string) string { return strings.ReplaceAll(good, from, to) }
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		says   string
	}{
		"one piece":     {say(`{"model":"m"}`), "its reply is no stream of events"},
		"garbage":       {event("data: <html>\n\n"), "its stream is not the JSON that was expected"},
		"nothing":       {event(""), "its stream ends after 0 tokens and does not say why"},
		"ends early":    {event(good + "data: [DONE]\n\n"), "its stream ends after 1 tokens and does not say why"},
		"half an event": {event(good + good[:40]), "its stream ends after 1 tokens and does not say why"},
		"an error": {event(good + `data: {"error":{"message":"boom"}}` + "\n\n"),
			`it breaks off: {"message":"boom"}`},
		"another model": {event(good + bad(`"m"`, `"gpt"`)), `by model "gpt"`},
		"counts":        {event(bad(`[-1]`, `[-1,-2]`)), "1 tokens and 2 log-probabilities"},
		"null":          {event(bad(`[-1]`, `[null]`)), "no log-probability of token 0"},
		"out of range": {event(bad(`"token_ids":[1]`, `"finish_reason":"length","token_ids":[99]`)),
			"token 0 is 99"},
		"an endless line": {func(w http.ResponseWriter) { event("")(w); flood(w) }, "its reply has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newFake(t, servers.KindVLLM)
			settings := a.settings()
			settings.StreamFrom = 1
			s := open(t, settings)
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
			a.fault(c.answer)
			_, err := s.Generate(t.Context(), rows(1, 4))
			require.ErrorIs(t, err, policy.ErrLost)
			require.ErrorContains(t, err, c.says)
			a.set(nil)
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
			g, err := s.Generate(t.Context(), rows(1, 4))
			require.NoError(t, err)
			checkModel(t, dir, rows(1, 4), g)
		})
	}
}

// What SGLang's events say about tokens is checked before it is believed.
func TestBadEventsOfSGLang(t *testing.T) {
	dir := policyDir(t, 99)
	event := func(ids string, count int, entries, finish string) string {
		return fmt.Sprintf(`data: {"output_ids":%s,"meta_info":{"weight_version":"WEIGHTS","completion_tokens":%d,`+
			`"finish_reason":%s,"output_token_logprobs":%s}}`+"\n\n", ids, count, finish, entries)
	}
	good := event("[1]", 1, "[[-1,1,null]]", "null")
	for name, c := range map[string]struct{ text, says string }{
		"garbage":    {"data: <html>\n\n", "its stream is not the JSON that was expected"},
		"ends early": {good + "data: [DONE]\n\n", "its stream ends after 1 tokens and does not say why"},
		"an error":   {good + `data: {"error":{"message":"boom"}}` + "\n\n", `it breaks off: {"message":"boom"}`},
		"an abort": {good + event("[]", 1, "[]", `{"type":"abort","message":"out of memory"}`),
			"it breaks off: out of memory"},
		"another version": {strings.ReplaceAll(good, "WEIGHTS", "beef"), "by weights beef, want"},
		"too few log-probabilities": {good + event("[1,2,3]", 3, "[[-1,2,null]]", "null"),
			"1 log-probabilities after 1 tokens, and counts 3"},
		"too many log-probabilities": {event("[1]", 1, "[[-1,1,null],[-1,2,null]]", "null"),
			"2 log-probabilities after 0 tokens, and counts 1"},
		"fewer tokens than before": {good + event("[]", 0, "[]", "null"),
			"0 log-probabilities after 1 tokens, and counts 0"},
		"other ids": {good + event("[2]", 2, "[[-1,3,null]]", "null"), "lists other tokens"},
		"other ids before": {good + event("[2,3]", 2, "[[-1,1,null],[-1,3,null]]", "null"),
			"lists other tokens"},
		"no log-probability":        {event("[1]", 1, "[[null,1,null]]", "null"), "lacks a log-probability"},
		"a log-probability of text": {event("[1]", 1, `[["NaN",1,null]]`, "null"), "that is no number and token"},
		"a positive log-probability": {event("[1,2,3,4]", 4,
			"[[-1,1,null],[0.5,2,null],[-1,3,null],[-1,4,null]]", `{"type":"length"}`),
			"the log-probability of token 1 is 0.5"},
		"a token out of range": {event("[99]", 1, "[[-1,99,null]]", `{"type":"stop"}`), "token 0 is 99"},
		"too many tokens": {event("[1,2,3,4,5]", 5, "[[-1,1],[-1,2],[-1,3],[-1,4],[-1,5]]", `{"type":"length"}`),
			"its response has 5 tokens, want 1 to 4"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newFake(t, servers.KindSGLang)
			settings := a.settings()
			settings.StreamFrom = 1
			s := open(t, settings)
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
			a.mu.Lock()
			weights := a.weights
			a.mu.Unlock()
			a.fault(func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, strings.ReplaceAll(c.text, "WEIGHTS", weights))
			})
			_, err := s.Generate(t.Context(), rows(1, 4))
			require.ErrorIs(t, err, policy.ErrLost)
			require.ErrorContains(t, err, c.says)
			a.set(nil)
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
			g, err := s.Generate(t.Context(), rows(1, 4))
			require.NoError(t, err)
			checkModel(t, dir, rows(1, 4), g)
		})
	}
}

// checkModel compares responses at temperature 1 with our own forward pass.
func checkModel(t *testing.T, dir string, req policy.GenerateRequest, g policy.Generated) {
	t.Helper()
	e, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
	var whole [][]int32
	for i, ids := range g.Tokens {
		require.Len(t, ids, req.MaxTokens[i])
		whole = append(whole, slices.Concat(req.Prefixes[i], ids))
	}
	out, err := e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: whole, Temperature: 1,
		Outputs: policy.OutLogProb})
	require.NoError(t, err)
	for i, lps := range g.LogProbs {
		require.Len(t, lps, len(g.Tokens[i]))
		for j, v := range lps {
			require.InDelta(t, out.LogProbs[i][len(req.Prefixes[i])+j], v, 1e-3)
		}
	}
}
