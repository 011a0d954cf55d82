package mcp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/mcptest"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// at returns the settings of a server at an address.
func at(address string) mcp.Server {
	return mcp.Server{Name: "count", URL: address, Repeat: "sandboxed", Session: mcp.PerEpisode, Sessions: 8,
		Seconds: 120, OutputKB: 4}
}

// served serves the honest server, and every request of a call as hostile does once it is set.
func served(t *testing.T, hostile *atomic.Pointer[http.HandlerFunc]) string {
	honest := mcptest.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := hostile.Load(); h != nil {
			(*h)(w, r)
			return
		}
		honest.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

func TestHostileAddresses(t *testing.T) {
	flood := strings.Repeat("x", 1<<20)
	notice := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + flood + `"}}`
	for name, broken := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"hang": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // a server notices that its client has gone only after that
			<-r.Context().Done()
		}, mcp.ErrHung},
		"no MCP": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }, mcp.ErrLost},
		"an error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
		}, mcp.ErrLost},
		"100 MB of JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 100 {
				if _, err := io.WriteString(w, flood); err != nil {
					return
				}
			}
		}, mcp.ErrFlood},
		"100 MB of events": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 100 {
				if _, err := io.WriteString(w, "data: "+notice+"\n\n"); err != nil {
					return
				}
			}
		}, mcp.ErrFlood},
	} {
		t.Run(name, func(t *testing.T) {
			bounded(t, func() {
				var hostile atomic.Pointer[http.HandlerFunc]
				p := newPool(t)
				s := pinned(t, p, at(served(t, &hostile)))
				s.Seconds = 3
				s.Repeat = "at_most_once"
				say := opened(t, p, s, "count_say_it")
				first := call(0, 0, "count_say_it", `{"text": "a"}`)
				r, err := one(t, say, first)
				require.NoError(t, err)
				hostile.Store(&broken.answer)
				_, err = one(t, say, call(0, 1, "count_say_it", `{"text": "b"}`, tool.Ran{Call: first, Result: r}))
				require.Error(t, err)
				require.ErrorIs(t, err, broken.want)
			})
		})
	}
}

// Headers hold secrets, so they are sent to the recipe's address alone.
func TestHeadersGoToTheAddressAlone(t *testing.T) {
	t.Setenv("MCPTEST_TOKEN", "s3cret-token")
	var others atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { others.Add(1) }))
	t.Cleanup(other.Close)
	var redirect atomic.Bool
	var seen atomic.Pointer[string]
	honest := mcptest.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if redirect.Load() {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		seen.Store(new(r.Header.Get("Authorization")))
		honest.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s := at(web.URL)
	s.Headers = []string{"Authorization=Bearer ${env:MCPTEST_TOKEN}"}
	p := newPool(t)
	pinned(t, p, s)
	require.Equal(t, "Bearer s3cret-token", *seen.Load())
	redirect.Store(true)
	_, err := p.Discover(t.Context(), s)
	require.ErrorIs(t, err, mcp.ErrLost)
	require.NotContains(t, err.Error(), "s3cret")
	require.Zero(t, others.Load())
}

// A session that has expired is opened again for tools that can run twice, whatever the server's answer holds besides
// its status.
func TestExpiredSessionsAreOpenedAnew(t *testing.T) {
	expired := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`)
	})
	var hostile atomic.Pointer[http.HandlerFunc]
	honest := served(t, &hostile)
	left := atomic.Int64{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") != "" && left.Add(-1) == 0 {
			expired(w, r)
			return
		}
		to, err := http.NewRequestWithContext(r.Context(), r.Method, honest, r.Body)
		if err != nil {
			panic(err)
		}
		to.Header = r.Header.Clone()
		resp, err := http.DefaultClient.Do(to)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		for name := range resp.Header {
			w.Header().Set(name, resp.Header.Get(name))
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(front.Close)
	p := newPool(t)
	say := opened(t, p, pinned(t, p, at(front.URL)), "count_say_it")
	first := call(0, 0, "count_say_it", `{"text": "a"}`)
	r, err := one(t, say, first)
	require.NoError(t, err)
	left.Store(1)
	second, err := one(t, say, call(0, 1, "count_say_it", `{"text": "b"}`, tool.Ran{Call: first, Result: r}))
	require.NoError(t, err)
	require.Negative(t, left.Load(), "the session had expired")
	require.Equal(t, r.Status, second.Status)
}
