package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/serverstest"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// mortal passes requests on between a sampler and a real llama-server. It kills the server in the middle of a rollout,
// breaks the connections after that until the sampler asks what the server is, and starts another one then. Responses
// that the server finished before its death arrive before the first connection breaks: the sampler would give them up
// with the server.
type mortal struct {
	t      testing.TB
	folder string
	after  int // responses to rows, before the server is killed

	mu       sync.Mutex
	now      *serverstest.Process
	proxy    *httputil.ReverseProxy
	answered map[string]int // whole responses to each row
	asking   int            // rows now
	broken   int
	dead     bool
	deaths   int
	died     time.Time
}

// grace is how long after the server's death connections break. Until then, whole responses arrive.
const grace = 2 * time.Second

func (m *mortal) start() {
	m.now = serverstest.Start(m.t, append([]string{"--models-dir", m.folder}, serverstest.Exact...)...)
	to, err := url.Parse(m.now.URL)
	require.NoError(m.t, err)
	m.proxy = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { m.abort() },
		ModifyResponse: func(r *http.Response) error {
			key, _ := r.Request.Context().Value(rowKey{}).(string)
			if key == "" || r.StatusCode != http.StatusOK {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			m.mu.Lock()
			defer m.mu.Unlock()
			m.answered[key]++
			if len(m.answered) >= m.after && m.asking > 2 && m.deaths == 0 {
				m.deaths, m.dead = 1, true
				m.now.Kill()
				m.died = time.Now()
			}
			return nil
		},
	}
}

// abort breaks the connection of a request to the server that was killed.
func (m *mortal) abort() {
	m.mu.Lock()
	died := m.died
	m.mu.Unlock()
	time.Sleep(time.Until(died.Add(grace)))
	panic(http.ErrAbortHandler)
}

type rowKey struct{}

// ServeHTTP implements http.Handler.
func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	require.NoError(m.t, err)
	r.Body = io.NopCloser(bytes.NewReader(body))
	m.mu.Lock()
	if m.dead && r.Method == http.MethodGet { // the stage is tried again
		m.dead = false
		m.start()
	}
	proxy, dead := m.proxy, m.dead
	if dead {
		m.broken++
	}
	m.mu.Unlock()
	if dead {
		m.abort()
	}
	if row := rowOf(body); strings.HasSuffix(r.URL.Path, "/completion") && row != "" {
		r = r.WithContext(context.WithValue(r.Context(), rowKey{}, row))
		m.count(1)
		defer m.count(-1)
	}
	proxy.ServeHTTP(w, r)
}

func (m *mortal) count(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asking += n
}

// rowOf identifies the row that a request asks for: its prompt and its seed. "" = the request scores the probe.
func rowOf(body []byte) string {
	var asked struct {
		Prompt json.RawMessage `json:"prompt"`
		Seed   json.RawMessage `json:"seed"`
		Bias   json.RawMessage `json:"logit_bias"`
	}
	if json.Unmarshal(body, &asked) != nil || asked.Bias != nil || asked.Seed == nil {
		return ""
	}
	return string(asked.Prompt) + " " + string(asked.Seed)
}

// The only server, a real llama-server, is killed with -9 in the middle of a rollout and started again: the stage is
// tried again, no response that was whole is asked for a second time, and no trajectory is excluded.
func TestARunWhoseOnlyServerIsKilled(t *testing.T) {
	m := &mortal{t: t, folder: t.TempDir(), after: 20, answered: map[string]int{}}
	m.start()
	proxy := httptest.NewServer(m)
	t.Cleanup(proxy.Close)
	settings := servers.Server{Kind: servers.KindLlama, URL: proxy.URL, Folder: m.folder, Model: "policy",
		Tolerance: 1e-3}
	b := newBench(t, mem.New())
	trainTiny(t, b, "killed", "steps=1", "loss.old_log_probs=recompute", named(t, settings))
	require.Equal(t, 1, m.deaths)
	require.Positive(t, m.broken)
	require.Greater(t, len(m.answered), 20)
	for row, n := range m.answered {
		require.Equal(t, 1, n, "a response that was whole is asked for again: %.80s", row)
	}
	for _, r := range stepRows[schema.TurnRow](t, b.store, "killed", 1, schema.StageRollout) {
		require.Nil(t, r.Excluded)
	}
	checkLogProbs(t, b.store, "killed", 1)
}
