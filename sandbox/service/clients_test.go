package service

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

const (
	floodToken  = "flood-token-of-the-tests"
	steadyToken = "steady-token-of-the-tests"
)

// two are a client with a quota and one without.
func two(q Quota) []Client {
	return []Client{{Name: "flood", Tokens: []Token{TokenOf(floodToken)}, Quota: q},
		{Name: "steady", Tokens: []Token{TokenOf(steadyToken)}}}
}

// post sends a body with a token.
func post(t *testing.T, s *Service, token, path string, body io.Reader) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", path, body)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w.Result()
}

func textOf(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

// metric returns the value of a metric with its labels.
func metric(t *testing.T, s *Service, token, name string) string {
	t.Helper()
	_, text := ask(t, s, "GET", "/metrics", "", "Authorization", "Bearer "+token)
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	require.NotNil(t, m, "%s is missing in\n%s", name, text)
	return m[1]
}

// Clients take turns, however many streams and requests one of them has.
func TestClientsTakeTurns(t *testing.T) {
	q := newQueue(1000)
	flood, steady := newClient("flood", Quota{}, nil), newClient("steady", Quota{}, nil)
	for i := range 6 {
		put(t, q, &receiver{client: flood}, fmt.Sprint("f", i), time.Minute)
	}
	mine := &receiver{client: steady}
	for i := range 3 {
		put(t, q, mine, fmt.Sprint("s", i), time.Minute)
	}
	require.Equal(t, []string{"f0", "s0", "f1", "s1", "f2", "s2", "f3", "f4", "f5"}, keys(q, 9))
	require.Empty(t, q.lanes)
}

// A client that runs as many calls as it may waits, and others pass.
func TestAClientRunsNoMoreThanItMay(t *testing.T) {
	q := newQueue(1000)
	flood, steady := newClient("flood", Quota{Running: 2}, nil), newClient("steady", Quota{}, nil)
	l := &receiver{client: flood}
	for i := range 4 {
		put(t, q, l, fmt.Sprint("f", i), time.Minute)
	}
	put(t, q, &receiver{client: steady}, "s0", time.Minute)
	first := q.pop()
	require.Equal(t, "f0", first.key)
	require.Equal(t, []string{"s0", "f1"}, keys(q, 2))
	put(t, q, &receiver{client: steady}, "s1", time.Minute)
	require.Equal(t, []string{"s1"}, keys(q, 1))
	popped := make(chan string)
	go func() { popped <- q.pop().key }()
	q.ran(first)
	require.Equal(t, "f2", <-popped)
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Nil(t, q.next(), "two of its calls run")
}

// One client floods. Its requests are refused, and say why; the other's calls succeed.
func TestAFloodIsRefusedAndOthersAreServed(t *testing.T) {
	f := &fake{hold: make(chan struct{})}
	log := &transcript.Transcript{}
	s := newService(t, Options{Executor: f, Clients: two(Quota{Calls: 3, Running: 1}),
		Log: slog.New(slog.NewTextHandler(log, nil))})
	held := make(chan *http.Response, 3)
	for range 3 {
		go func() { held <- post(t, s, floodToken, "/v1/run", strings.NewReader(`{"code":"hold"}`)) }()
	}
	require.Eventually(t, func() bool {
		return metric(t, s, steadyToken, `ropewalk_sandbox_client_calls{client="flood"}`) == "3"
	}, hangs, time.Millisecond)
	for _, path := range []string{"/v1/run", "/run_code"} {
		answer := post(t, s, floodToken, path, strings.NewReader(`{"code":"1"}`))
		require.Equal(t, "1", answer.Header.Get("Retry-After"))
		requireError(t, answer.StatusCode, textOf(t, answer), http.StatusTooManyRequests, rpc.KindOverQuota, "",
			`client "flood" has reached its limit: calls is 3`)
	}
	for range 10 {
		answer := post(t, s, steadyToken, "/v1/run", strings.NewReader(`{"code":"1"}`))
		require.Equal(t, http.StatusOK, answer.StatusCode, textOf(t, answer))
	}
	require.Equal(t, 1, countHolds(f), "one call of the flood runs")
	limited := `ropewalk_sandbox_client_limited_total{client=%q,limit="calls"}`
	require.Equal(t, "2", metric(t, s, steadyToken, fmt.Sprintf(limited, "flood")))
	require.Equal(t, "0", metric(t, s, steadyToken, fmt.Sprintf(limited, "steady")))
	require.Equal(t, "10", metric(t, s, steadyToken, `ropewalk_sandbox_client_answers_total{client="steady"}`))
	require.Equal(t, "10", metric(t, s, steadyToken, `ropewalk_sandbox_client_cpu_seconds_total{client="steady"}`))
	close(f.hold)
	for range 3 {
		require.Equal(t, http.StatusOK, (<-held).StatusCode, "what was accepted is answered")
	}
	answer := post(t, s, "guess-of-a-token", "/v1/run", strings.NewReader(`{"code":"1"}`))
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	require.Contains(t, log.String(), `msg="refused a client over its quota" client=flood limit=calls most=3`)
	require.Contains(t, log.String(),
		`msg="refused a request without a valid token" path=/v1/run address=192.0.2.1:1234`)
	for _, token := range []string{floodToken, steadyToken, "guess-of-a-token"} {
		require.NotContains(t, log.String(), token)
	}
}

func countHolds(f *fake) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.seen {
		if c.Code == "hold" {
			n++
		}
	}
	return n
}

// Bodies that one client sends slowly take no room from others.
func TestBodiesOfAClientAreBounded(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}, Clients: two(Quota{})})
	flood := s.clients.find("Bearer " + floodToken)
	require.Equal(t, s.o.QueueBytes/2, flood.quota.Load().Bytes, "without a bound of its own, an equal part")
	flood.quota.Store(newQuota(Quota{Bytes: 2 * bodyChunk}))
	body, slow := io.Pipe()
	first := make(chan *http.Response, 1)
	go func() { first <- post(t, s, floodToken, "/v1/run", body) }()
	_, err := io.WriteString(slow, `{"code":"1`+strings.Repeat(" ", bodyChunk))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !flood.quota.Load().bodies.TryAcquire(1) }, hangs,
		time.Millisecond)
	answer := post(t, s, floodToken, "/v1/run", strings.NewReader(`{"code":"1"}`))
	requireError(t, answer.StatusCode, textOf(t, answer), http.StatusTooManyRequests, rpc.KindOverQuota, "",
		`client "flood" has reached its limit: queue_mb is 0`)
	answer = post(t, s, steadyToken, "/v1/run", strings.NewReader(`{"code":"1"}`))
	require.Equal(t, http.StatusOK, answer.StatusCode)
	_, err = io.WriteString(slow, `"}`)
	require.NoError(t, err)
	require.NoError(t, slow.Close())
	require.Equal(t, http.StatusOK, (<-first).StatusCode)
	require.True(t, flood.quota.Load().bodies.TryAcquire(2*bodyChunk), "its room is given back")
}

func TestSessionsOfAClient(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}, Clients: two(Quota{Sessions: 1})})
	open := func(token string) error {
		ctx := as(t.Context(), s.clients.find("Bearer "+token))
		_, err := s.openSession(ctx, "", sandbox.Limits{})
		return err
	}
	require.NoError(t, open(floodToken))
	err := open(floodToken)
	require.ErrorIs(t, err, rpc.ErrOverQuota)
	require.ErrorContains(t, err, `client "flood" has reached its limit: sessions is 1`)
	require.NoError(t, open(steadyToken))
	require.Equal(t, "1", metric(t, s, steadyToken, `ropewalk_sandbox_client_sessions{client="flood"}`))
	s.sessions.finish(s.clients.find("Bearer " + floodToken))
	require.NoError(t, open(floodToken))
}

// Two clients may use the same key for different calls, and neither gets the other's verdict.
func TestKeysBelongToTheirClient(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}, Clients: two(Quota{})})
	for token, input := range map[string]string{floodToken: "one", steadyToken: "other"} {
		for range 2 {
			answer := post(t, s, token, "/v1/run", strings.NewReader(`{"code":"1","key":"k","stdin":"`+input+`"}`))
			require.Contains(t, textOf(t, answer), `"stdout":"`+input+`"`)
		}
	}
}

// A client keeps its calls when its tokens and its quota change.
func TestClientsCanChange(t *testing.T) {
	f := &fake{hold: make(chan struct{})}
	s := newService(t, Options{Executor: f, Clients: two(Quota{Calls: 1})})
	held := make(chan *http.Response, 1)
	go func() { held <- post(t, s, floodToken, "/v1/run", strings.NewReader(`{"code":"hold"}`)) }()
	require.Eventually(t, func() bool { return f.runs() == 1 }, hangs, time.Millisecond)
	call := func(token string) int {
		return post(t, s, token, "/v1/run", strings.NewReader(`{"code":"1"}`)).StatusCode
	}
	require.Equal(t, http.StatusTooManyRequests, call(floodToken))

	next := two(Quota{Calls: 2})
	next[0].Tokens = append(next[0].Tokens, TokenOf("next-token-of-the-tests"))
	s.SetClients(next)
	require.Equal(t, http.StatusOK, call(floodToken), "the old token is still in the file")
	require.Equal(t, http.StatusOK, call("next-token-of-the-tests"))
	next[0].Tokens = next[0].Tokens[1:]
	s.SetClients(next)
	require.Equal(t, http.StatusUnauthorized, call(floodToken))
	require.Equal(t, http.StatusOK, call("next-token-of-the-tests"))
	require.Equal(t, "1", metric(t, s, steadyToken, `ropewalk_sandbox_client_calls{client="flood"}`))
	close(f.hold)
	require.Equal(t, http.StatusOK, (<-held).StatusCode)

	s.SetClients(next[1:])
	require.Equal(t, http.StatusUnauthorized, call("next-token-of-the-tests"))
	_, text := ask(t, s, "GET", "/metrics", "", "Authorization", "Bearer "+steadyToken)
	require.NotContains(t, text, `client="flood"`)
}

// Requests that are being decoded are bounded for each client, too.
func TestDecodingOfAClientIsBounded(t *testing.T) {
	d := newDecoding(1000, t.Context())
	c := newClient("flood", Quota{Bytes: 100}, nil)
	data, err := d.Marshal(&rpc.RunRequest{Cancel: []string{strings.Repeat("x", 80)}})
	require.NoError(t, err)
	first, second := &rpc.RunRequest{}, &rpc.RunRequest{}
	d.owners.Store(first, as(t.Context(), c))
	require.NoError(t, d.Unmarshal(data, first))
	waiting, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	d.owners.Store(second, as(waiting, c))
	require.ErrorIs(t, d.Unmarshal(data, second), context.DeadlineExceeded)
	d.release(first)
	d.owners.Store(second, as(t.Context(), c))
	require.NoError(t, d.Unmarshal(data, second))
	d.release(second)
	require.True(t, d.room.TryAcquire(1000), "all room is given back")
}

func TestParseClients(t *testing.T) {
	digest := fmt.Sprintf("%x", TokenOf(floodToken))
	for _, text := range []string{floodToken, floodToken + "\n", " " + floodToken + " \r\n"} {
		got, err := ParseClients("f", []byte(text))
		require.NoError(t, err)
		require.Equal(t, []Client{{Name: "default", Tokens: []Token{TokenOf(floodToken)}}}, got)
	}
	got, err := ParseClients("f", []byte("# who\nclients:\n- name: a\n  tokens: [sha256:"+digest+", "+steadyToken+
		"]\n  calls: 5\n  running: 2\n  sessions: 3\n  queue_mb: 64\n- {name: b.c-d_e, tokens: ["+
		strings.Repeat("f", 16)+"]}\n"))
	require.NoError(t, err)
	require.Equal(t, []Client{
		{Name: "a", Tokens: []Token{TokenOf(floodToken), TokenOf(steadyToken)},
			Quota: Quota{Calls: 5, Running: 2, Sessions: 3, Bytes: 64 << 20}},
		{Name: "b.c-d_e", Tokens: []Token{TokenOf(strings.Repeat("f", 16))}},
	}, got)

	const a = "clients:\n- name: a\n  tokens: [" + floodToken + "]\n"
	for _, tt := range []struct{ text, want string }{
		{" \n", "f is empty"},
		{"# nothing\n# at all\n", "f is empty"},
		{floodToken + "\n" + steadyToken + "\n", "f:1: must be a mapping, got a text"},
		{"clients: []\n", "f:1: clients: there are 0, 1 to 256 are taken"},
		{a + "  colour: red\n", "f:4: field colour not found"},
		{a + "  calls: many\n", "f:4: must be a whole number, got a text"},
		{a + "  calls: " + steadyToken + "\n", "f:4: must be a whole number, got a text"},
		{a + "  calls: 0\n", "f:4: clients[0].calls: 0 is not between 1 and 1048576"},
		{a + "  running: -1\n", "f:4: clients[0].running: -1 is not between 1 and 1048576"},
		{a + "  queue_mb: 8\n", "f:4: clients[0].queue_mb: 8 is not between 64 and 1048576"},
		{a + "- name: a\n  tokens: [" + steadyToken + "]\n", `f:4: clients[1].name: "a" is the name of another client`},
		{a + "- name: b\n  tokens:\n  - " + floodToken + "\n",
			`f:6: clients[1].tokens: entry 0 is also a token of client "a"`},
		{a + "- tokens: [" + steadyToken + "]\n",
			"f:4: clients[1].name: a name has 1 to 63 letters, digits, and . _ - after the first"},
		{a + "- name: b\n", "f:4: clients[1].tokens: the client has no token"},
		{a + "- name: b\n  tokens: [short]\n", "f:5: clients[1].tokens: entry 0: a token has at least 16 characters"},
		{a + "- name: b\n  tokens: ['sha256:12']\n",
			"f:5: clients[1].tokens: entry 0: after sha256: come 64 hexadecimal digits"},
		{a + "---\n" + a, "f: the file has more than one document"},
		{"x: &x [{name: '', tokens: []}]\nclients: *x\n", "f:1: field x not found"},
	} {
		_, err := ParseClients("f", []byte(tt.text))
		require.EqualError(t, err, tt.want, tt.text)
		require.NotContains(t, err.Error(), floodToken)
		require.NotContains(t, err.Error(), steadyToken)
	}
	var many bytes.Buffer
	many.WriteString("clients:\n")
	for i := range mostClients + 1 {
		fmt.Fprintf(&many, "- {name: c%d, tokens: [token-number-%06d]}\n", i, i)
	}
	_, err = ParseClients("f", many.Bytes())
	require.EqualError(t, err, "f:1: clients: there are 257, 1 to 256 are taken")
}

func FuzzParseClients(f *testing.F) {
	f.Add([]byte("clients:\n- name: a\n  tokens: [sha256:12, " + floodToken + "]\n  calls: 5\n"))
	f.Add([]byte("a: &a\n- name: x\nclients: *a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := ParseClients("f", text)
		require.Equal(t, err != nil, len(all) == 0)
	})
}
