package serve_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

func newListener(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// TestBadRequests: each is refused in OpenAI's form, which names the field.
func TestBadRequests(t *testing.T) {
	f := start(t, published(t, 1), func(o *serve.Options) { o.BodyBytes = 1 << 20 })
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	for _, c := range []struct {
		path, body string
		status     int
		param      string
	}{
		{"/v1/completions", ``, 400, ""},
		{"/v1/completions", `null`, 400, ""},
		{"/v1/completions", `[]`, 400, ""},
		{"/v1/completions", `{"prompt": "a"} x`, 400, ""},
		{"/v1/completions", `{"prompt": "a"}{}`, 400, ""},
		{"/v1/completions", "\x00\xff\xfe", 400, ""},
		{"/v1/completions", `{"prompt": "a", "temperature": NaN}`, 400, ""},
		{"/v1/completions", deep, 400, ""},
		{"/v1/completions", `{"prompt": ` + deep + `}`, 400, ""},
		{"/v1/completions", `{}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": null}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": 7}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": ""}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": []}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": [[]]}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": [{}]}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": [1.5]}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": [-1]}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": [999999]}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": [99999999999999999999]}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": "` + strings.Repeat("the ", 600) + `"}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": "a", "max_tokens": 600}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": "a", "max_tokens": 0}`, 400, "max_tokens"},
		{"/v1/completions", `{"prompt": "a", "max_tokens": -1}`, 400, "max_tokens"},
		{"/v1/completions", `{"prompt": "a", "max_tokens": 1e300}`, 400, "max_tokens"},
		{"/v1/completions", `{"prompt": "a", "max_tokens": 1.5}`, 400, "max_tokens"},
		{"/v1/completions", `{"prompt": "a", "max_tokens": "5"}`, 400, "max_tokens"},
		{"/v1/completions", `{"prompt": "a", "temperature": "NaN"}`, 400, "temperature"},
		{"/v1/completions", `{"prompt": "a", "temperature": -0.1}`, 400, "temperature"},
		{"/v1/completions", `{"prompt": "a", "temperature": 1e-30}`, 400, "temperature"},
		{"/v1/completions", `{"prompt": "a", "temperature": 1e400}`, 400, "temperature"},
		{"/v1/completions", `{"prompt": "a", "top_p": 1.01}`, 400, "top_p"},
		{"/v1/completions", `{"prompt": "a", "top_p": 0}`, 400, "top_p"},
		{"/v1/completions", `{"prompt": "a", "top_k": -2}`, 400, "top_k"},
		{"/v1/completions", `{"prompt": "a", "min_p": 2}`, 400, "min_p"},
		{"/v1/completions", `{"prompt": "a", "n": 0}`, 400, "n"},
		{"/v1/completions", `{"prompt": "a", "n": 100000}`, 400, "n"},
		{"/v1/completions", `{"prompt": ["a", "b"], "n": 1000}`, 400, "prompt"},
		{"/v1/completions", `{"prompt": "a", "seed": 1.5}`, 400, "seed"},
		{"/v1/completions", `{"prompt": "a", "seed": [1, 2]}`, 400, "seed"},
		{"/v1/completions", `{"prompt": "a", "seed": 18446744073709551616}`, 400, "seed"},
		{"/v1/completions", `{"prompt": "a", "stop": ["a", ""]}`, 400, "stop"},
		{"/v1/completions", `{"prompt": "a", "stop": {}}`, 400, "stop"},
		{"/v1/completions", `{"prompt": "a", "stop_token_ids": [100000]}`, 400, "stop_token_ids"},
		{"/v1/completions", `{"prompt": "a", "logprobs": 21}`, 400, "logprobs"},
		{"/v1/completions", `{"prompt": "a", "stream": "yes"}`, 400, "stream"},
		{"/v1/completions", `{"prompt": "a", "stream_options": {}}`, 400, "stream_options"},
		{"/v1/completions", `{"prompt": "a", "best_of": 3}`, 400, "best_of"},
		{"/v1/completions", `{"prompt": "a", "logit_bias": {"5": 1}}`, 400, "logit_bias"},
		{"/v1/completions", `{"prompt": "a", "presence_penalty": 1}`, 400, "presence_penalty"},
		{"/v1/completions", `{"prompt": "a", "temprature": 1}`, 400, "temprature"},
		{"/v1/completions", `{"prompt": "a", "model": "gpt-5"}`, 404, "model"},
		{"/v1/completions", `{"prompt": "` + strings.Repeat("a", 2<<20) + `"}`, 413, ""},
		{"/v1/chat/completions", `{}`, 400, "messages"},
		{"/v1/chat/completions", `{"messages": []}`, 400, "messages"},
		{"/v1/chat/completions", `{"messages": ["a"]}`, 400, "messages[0]"},
		{"/v1/chat/completions", `{"messages": [{"content": "a"}]}`, 400, "messages[0].role"},
		{"/v1/chat/completions", `{"messages": [{"role": "user"}]}`, 400, "messages[0].content"},
		{"/v1/chat/completions", `{"messages": [{"role": "user", "content": 5}]}`, 400, "messages[0].content"},
		{"/v1/chat/completions", `{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, 400,
			"messages[0].content[0]"},
		{"/v1/chat/completions", `{"messages": [{"role": "assistant", "tool_calls": [{}]}]}`, 400,
			"messages[0].tool_calls[0].function"},
		{"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "tools": [{}]}`, 400, "tools[0]"},
		{"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "tool_choice": "required"}`, 400,
			"tool_choice"},
		{"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "top_logprobs": 2}`, 400,
			"top_logprobs"},
		{"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}],
			"response_format": {"type": "json_object"}}`, 400, "response_format"},
		{"/v1/chat/completions", `{"messages": [{"role": "user", "content": "` + strings.Repeat("the ", 600) + `"}]}`,
			400, "messages"},
		{"/v1/load", `{"path": "/"}`, 403, ""},
		{"/v1/embeddings", `{}`, 404, ""},
	} {
		name := c.body[:min(len(c.body), 80)]
		status, answer := f.post(c.path, c.body)
		require.Equal(t, c.status, status, "%s: %v", name, answer)
		e, ok := answer["error"].(object)
		require.True(t, ok, name)
		require.NotEmpty(t, e["message"], name)
		require.NotEmpty(t, e["type"], name)
		require.Contains(t, e, "code", name)
		require.Less(t, len(e["message"].(string)), 500, name)
		if c.param == "" {
			require.Nil(t, e["param"], name)
		} else {
			require.Equal(t, c.param, e["param"], "%s: %v", name, e)
		}
	}
	status, answer := f.post("/v1/completions", object{"prompt": "the", "max_tokens": 2})
	require.Equal(t, http.StatusOK, status, "%v", answer)
}

// TestHugeBody: a body of 1 GB is refused after the bytes that are allowed.
func TestHugeBody(t *testing.T) {
	f := start(t, published(t, 1), func(o *serve.Options) { o.BodyBytes = 1 << 20 })
	var read atomic.Int64
	body := io.MultiReader(strings.NewReader(`{"prompt": "`), &endless{left: 1 << 30, read: &read})
	r, err := http.NewRequest(http.MethodPost, f.http.URL+"/v1/completions", body)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	response, err := f.http.Client().Do(r)
	if err == nil { // the server may close the connection while the client still sends
		require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
		response.Body.Close()
	}
	require.Less(t, read.Load(), int64(64<<20))
}

type endless struct {
	left int
	read *atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := min(len(p), e.left)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = 'a'
	}
	e.left -= n
	e.read.Add(int64(n))
	return n, nil
}

// TestGarbage: whatever bytes come, the answer is an error or an answer, and the server goes on.
func TestGarbage(t *testing.T) {
	f := start(t, published(t, 1), nil)
	rng := rand.New(rand.NewPCG(1, 2))
	base := []string{
		`{"prompt": "the", "max_tokens": 2, "logprobs": 1, "stop": ["x"], "seed": 3, "temperature": 0.5}`,
		`{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2, "tools": [{"type": "function", ` +
			`"function": {"name": "f", "parameters": {}}}], "chat_template_kwargs": {"note": 1}}`,
	}
	for range 400 {
		kind := rng.IntN(2)
		body := []byte(base[kind])
		for range 1 + rng.IntN(4) {
			switch at := rng.IntN(len(body)); rng.IntN(3) {
			case 0:
				body[at] = byte(rng.IntN(256))
			case 1:
				body = append(body[:at], body[at+1:]...)
			default:
				body = append(body[:at], append([]byte(`[{"9e99:,`)[:1+rng.IntN(8)], body[at:]...)...)
			}
		}
		status, answer := f.post([]string{"/v1/completions", "/v1/chat/completions"}[kind], string(body))
		if status != http.StatusOK {
			require.Contains(t, []int{400, 404}, status, "%s: %v", body, answer)
			require.Contains(t, answer, "error")
		}
	}
}

// TestQueueLimit: beyond the queue requests get 429 with Retry-After.
func TestQueueLimit(t *testing.T) {
	f := start(t, published(t, 1), func(o *serve.Options) { o.Rows, o.Queue = 1, 2 })
	long := object{"prompt": "the", "max_tokens": 500, "ignore_eos": true}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	hold := func() {
		wg.Go(func() {
			if response, err := f.try(ctx, "/v1/completions", long); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
	queued := func(n int) func() bool {
		return func() bool {
			_, page := f.get("/metrics")
			return strings.Contains(page, fmt.Sprintf("ropewalk_serve_queued_rows %d\n", n))
		}
	}
	var refused bool
	for range 20 { // until the row and the queue are taken at once
		for range 3 {
			hold()
		}
		if !waitFor(queued(2)) {
			continue
		}
		response := f.send(t.Context(), "/v1/completions", long)
		refused = response.StatusCode == http.StatusTooManyRequests
		if refused {
			require.Equal(t, "1", response.Header.Get("Retry-After"))
		}
		response.Body.Close()
		if refused {
			break
		}
	}
	require.True(t, refused)
	cancel()
	wg.Wait()
	require.Eventually(t, queued(0), 5*time.Minute, time.Millisecond)
}

func waitFor(done func() bool) bool {
	for range 200 {
		if done() {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// TestToken: without its token nothing but the health is told; without a token only this machine's own names are
// answered, and only JSON is read.
func TestToken(t *testing.T) {
	f := start(t, published(t, 1), func(o *serve.Options) { o.Token = "secret" })
	ask := func(url, path, host, header string) int {
		r, err := http.NewRequest(http.MethodGet, url+path, nil)
		require.NoError(t, err)
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		r.Host = host
		response, err := f.http.Client().Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NotContains(t, string(data), "secret")
		return response.StatusCode
	}
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, "secret": 401, "Bearer secret": 200} {
		require.Equal(t, want, ask(f.http.URL, "/v1/models", "", header), header)
		require.Equal(t, want, ask(f.http.URL, "/metrics", "", header), header)
		require.Equal(t, 200, ask(f.http.URL, "/health", "", header), header)
	}
	require.Equal(t, 200, ask(f.http.URL, "/v1/models", "example.org", "Bearer secret"))
	open := start(t, f.dir, nil)
	require.Equal(t, 403, ask(open.http.URL, "/v1/models", "example.org", ""))
	require.Equal(t, 200, ask(open.http.URL, "/v1/models", "localhost:1", ""))
	require.Equal(t, 200, ask(open.http.URL, "/v1/models", "[::1]", ""))
	page, err := http.NewRequest(http.MethodGet, open.http.URL+"/v1/models", nil)
	require.NoError(t, err)
	page.Header.Set("Origin", "http://localhost:1")
	refused, err := open.http.Client().Do(page)
	require.NoError(t, err)
	refused.Body.Close()
	require.Equal(t, http.StatusForbidden, refused.StatusCode, "a page of another origin")
	response, err := http.Post(open.http.URL+"/v1/completions", "text/plain", strings.NewReader(`{"prompt": "a"}`))
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, http.StatusUnsupportedMediaType, response.StatusCode)
}

// TestLoad: requests in flight end with the old weights, later ones have the new ones, and what does not fit is refused
// and changes nothing.
func TestLoad(t *testing.T) {
	first, second := published(t, 1), published(t, 2)
	f := start(t, first, func(o *serve.Options) { o.AllowLoad, o.Rows = true, 2 })
	digest := func(dir string) string {
		d, err := checkpoint.Digest(dir)
		require.NoError(t, err)
		return d
	}
	ask := object{
		"prompt": "the answer is a number", "max_tokens": 300, "ignore_eos": true, "seed": 3, "return_token_ids": true,
	}
	weights := func(answer object) any { return answer["ropewalk"].(object)["weights"] }
	_, before := f.post("/v1/completions", ask)
	require.Equal(t, digest(first), weights(before))

	for name, c := range map[string]struct {
		body   object
		status int
		param  string
	}{
		"no path":   {object{}, 400, "path"},
		"relative":  {object{"path": "model"}, 400, "path"},
		"missing":   {object{"path": filepath.Join(t.TempDir(), "x")}, 400, "path"},
		"no model":  {object{"path": t.TempDir()}, 400, "path"},
		"digest":    {object{"path": second, "digest": digest(first)}, 409, "digest"},
		"tokenizer": {object{"path": own(t)}, 400, "path"},
		"field":     {object{"path": second, "diget": "x"}, 400, "diget"},
		"broken":    {object{"path": broken(t, second)}, 400, "path"},
	} {
		status, answer := f.post("/v1/load", c.body)
		require.Equal(t, c.status, status, "%s: %v", name, answer)
		require.Equal(t, c.param, answer["error"].(object)["param"], name)
		_, again := f.post("/v1/completions", ask)
		require.Equal(t, before["choices"], again["choices"], name)
		require.Equal(t, digest(first), weights(again), name)
	}

	var wg sync.WaitGroup
	answers := make([]object, 6)
	for i := range answers {
		wg.Go(func() { _, answers[i] = f.post("/v1/completions", ask) })
	}
	require.Eventually(t, func() bool { return f.server.Usage().Rows > 0 }, 5*time.Minute, 100*time.Microsecond)
	status, loaded := f.post("/v1/load", object{"path": second, "digest": digest(second)})
	require.Equal(t, http.StatusOK, status, "%v", loaded)
	require.Equal(t, digest(second), weights(loaded))
	wg.Wait()
	_, after := f.post("/v1/completions", ask)
	require.Equal(t, digest(second), weights(after))
	require.NotEqual(t, before["choices"], after["choices"])
	seen := map[any]bool{}
	for _, a := range answers {
		seen[weights(a)] = true
		if weights(a) == digest(first) {
			require.Equal(t, before["choices"], a["choices"])
		} else {
			require.Equal(t, after["choices"], a["choices"])
		}
	}
	require.Contains(t, seen, digest(first))
	want, err := f.engine.Generate(t.Context(), policy.GenerateRequest{
		Role: policy.RolePolicy, Prefixes: [][]int32{f.model.Tokens.Encode("the answer is a number")},
		Streams: []uint64{3}, MaxTokens: []int{300}, Temperature: 1,
	})
	require.NoError(t, err)
	require.Equal(t, want.Tokens[0], ids(choices(after)[0]["token_ids"]), "nothing of the old weights is kept")
}

// broken is a copy of a model whose weights are cut short.
func broken(t *testing.T, dir string) string {
	to := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	require.NoError(t, os.Truncate(filepath.Join(to, checkpoint.FileWeights), 5000))
	return to
}
