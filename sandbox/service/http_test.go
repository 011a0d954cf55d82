package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

func TestRun(t *testing.T) {
	f := &fake{}
	s := newService(t, Options{Executor: f})
	got := askFor[ResultBody](t, s, "POST", "/v1/run", `{"code":"ok","language":"python",
		"packages":"numpy","stdin":"in",
		"files":[{"name":"a","content":"AAH/"},{"name":"b","text":"é"}],"collect":["b","a","c"],
		"limits":{"cpu_seconds":1.5,"wall_seconds":20,"memory_bytes":1000,"output_bytes":2000,
			"file_bytes":3000,"processes":4},
		"queue_life_seconds":9,"key":"k","trace":"t"}`)
	require.Equal(t, sandbox.Call{
		Language: "python", Packages: "numpy", Code: "ok", Stdin: "in", Collect: []string{"b", "a", "c"}, Trace: "t",
		Files: []sandbox.File{{Name: "a", Content: []byte{0, 1, 255}}, {Name: "b", Content: []byte("é")}},
		Limits: sandbox.Limits{CPU: 1500 * time.Millisecond, Wall: 20 * time.Second, MemoryBytes: 1000,
			OutputBytes: 2000, FileBytes: 3000, Processes: 4},
	}, f.last())
	require.Positive(t, got.Timing.Queue)
	got.Timing.Queue = 0
	require.Equal(t, ResultBody{Key: "k", Trace: "t", Status: "ok", Stdout: "in",
		Files:  []FileOut{{"b", []byte("é")}, {"a", []byte{0, 1, 255}}},
		Timing: TimingBody{Wall: 2, CPU: 1, PeakMemory: 7}}, got)

	askFor[ResultBody](t, s, "POST", "/v1/run", `{"code":"ok","preset":"rstar2","limits":{"memory_bytes":5}}`)
	require.Equal(t, 10*time.Second, f.last().Limits.CPU)
	require.Equal(t, int64(5), f.last().Limits.MemoryBytes)
}

func TestEveryVerdictIsAnAnswer(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}})
	for _, status := range sandbox.Statuses() {
		if status.Breakage() {
			continue
		}
		got := askFor[ResultBody](t, s, "POST", "/v1/run", fmt.Sprintf(`{"code":%q}`, status))
		require.Equal(t, string(status), got.Status)
	}
}

func TestBadInputIsATypedError(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}})
	for _, tt := range []struct {
		name, path, body     string
		code                 int
		kind, field, message string
	}{
		{"no JSON", "/v1/run", `{"code":`, 400, "malformed", "", "unexpected EOF"},
		{"more than JSON", "/v1/run", `{"code":"x"} {}`, 400, "malformed", "", "continues after"},
		{"not UTF-8", "/v1/run", "{\"code\":\"\xff\"}", 400, "malformed", "", "not UTF-8"},
		{"an unknown field", "/v1/run", `{"code":"x","colour":1}`, 400, "malformed", "colour", "unknown field"},
		{"another type", "/v1/run", `{"code":7}`, 400, "malformed", "code", "code: must be a text, got a number"},
		{"no code", "/v1/run", `{}`, 400, "malformed", "code", "missing"},
		{"an unknown language", "/v1/run", `{"code":"x","language":"cobol"}`, 400, "bad_call", "", `language "cobol"`},
		{"an unknown preset", "/v1/run", `{"code":"x","preset":"rstar9"}`, 400, "malformed", "preset", "rstar9"},
		{"a negative limit", "/v1/run", `{"code":"x","limits":{"memory_bytes":-1}}`, 400, "bad_call", "limits.memory",
			"negative"},
		{"a limit beyond reason", "/v1/run", `{"code":"x","limits":{"cpu_seconds":1e300}}`, 400, "malformed",
			"limits.cpu_seconds", "year"},
		{"a negative life", "/v1/run", `{"code":"x","queue_life_seconds":-1}`, 400, "bad_call", "", "queue_life"},
		{"NUL in a name", "/v1/run", `{"code":"x","files":[{"name":"a\u0000b","text":""}]}`, 400, "bad_call",
			"files[0]", "files[0]"},
		{"a path out", "/v1/run", `{"code":"x","collect":["../a"]}`, 400, "bad_call", "collect[0]", "relative path"},
		{"a file twice over", "/v1/run", `{"code":"x","files":[{"name":"a","content":"AA==","text":"b"}]}`, 400,
			"malformed", "files[0]", "content and text"},
		{"too much code", "/v1/run", `{"code":"` + strings.Repeat(" ", sandbox.MostCode+1) + `"}`, 400, "bad_call",
			"code", "8388609 bytes"},
		{"a long key", "/v1/run", `{"code":"x","key":"` + strings.Repeat("k", 257) + `"}`, 400, "bad_call", "",
			"257 bytes"},
		{"it breaks", "/v1/run", `{"code":"break"}`, 500, "infrastructure", "", "the zygote is gone"},
		{"it panics", "/v1/run", `{"code":"panic"}`, 500, "infrastructure", "", "no verdict"},
		{"nothing there", "/v2/run", `{}`, 404, "not_found", "", "/v2/run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, text := ask(t, s, "POST", tt.path, tt.body)
			requireError(t, code, text, tt.code, tt.kind, tt.field, tt.message)
		})
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/run", strings.NewReader(`{"code":"`))
	r.ContentLength = 100 << 20 // none of it is read
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	requireError(t, w.Code, w.Body.String(), 413, "too_large", "", "104857600 bytes")
	endless := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/run",
		strings.NewReader(`{"code":"`+strings.Repeat("x", 65<<20)+`"}`))
	endless.ContentLength = -1
	w = httptest.NewRecorder()
	s.Handler().ServeHTTP(w, endless)
	requireError(t, w.Code, w.Body.String(), 413, "too_large", "", "at most")
}

func TestKeysOverHTTP(t *testing.T) {
	f := &fake{}
	s := newService(t, Options{Executor: f})
	first := askFor[ResultBody](t, s, "POST", "/v1/run", `{"code":"ok","stdin":"a","key":"k"}`)
	require.Equal(t, first, askFor[ResultBody](t, s, "POST", "/v1/run", `{"code":"ok","stdin":"a","key":"k"}`))
	require.Len(t, f.seen, 1)
	code, text := ask(t, s, "POST", "/v1/run", `{"code":"ok","stdin":"b","key":"k"}`)
	requireError(t, code, text, 409, "key_conflict", "key", `"k"`)
	ask(t, s, "POST", "/v1/run", `{"code":"break","key":"l"}`)
	ask(t, s, "POST", "/v1/run", `{"code":"break","key":"l"}`)
	require.Len(t, f.seen, 3, "breakage is not kept")
}

func TestQueueTimeoutOverHTTP(t *testing.T) {
	f := &fake{hold: make(chan struct{})}
	s := newService(t, Options{Executor: f})
	defer close(f.hold)
	for i := range s.workers + 1 { // every worker is busy
		go ask(t, s, "POST", "/v1/run", fmt.Sprintf(`{"code":"hold","stdin":"%d"}`, i))
	}
	require.Eventually(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.seen) == s.workers+1 },
		hangs, time.Millisecond)
	code, text := ask(t, s, "POST", "/v1/run", `{"code":"ok","queue_life_seconds":0.05}`)
	requireError(t, code, text, 503, "queue_timeout", "", "its queue life is 50ms")
}

func TestSessions(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}, MostSessions: 1})
	ctx := as(t.Context(), s.clients.find(""))
	_, err := s.openSession(ctx, "none", sandbox.Limits{})
	require.ErrorContains(t, err, "not offered")
	_, err = s.openSession(ctx, "", sandbox.Limits{Processes: -1})
	require.ErrorIs(t, err, sandbox.ErrBadCall)
	session, err := s.openSession(ctx, "numpy", sandbox.Limits{CPU: time.Second})
	require.NoError(t, err)
	_, err = s.openSession(ctx, "", sandbox.Limits{})
	require.ErrorIs(t, err, errManySessions)
	for want := range 2 {
		got := s.cell(ctx, session, sandbox.Call{Code: "x"}).GetResult()
		require.Equal(t, fmt.Sprint(want+1), string(got.GetValue()))
	}
	require.Equal(t, rpc.KindSessionEnded, s.cell(ctx, session, sandbox.Call{Code: "exit"}).GetFailure().GetKind())
	s.sessions.finish(asking(ctx))
	require.Zero(t, s.sessions.count())
}

func TestTokenAndHealth(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}, Token: "secret"})
	for _, header := range []string{"", "Bearer guess", "secret"} {
		code, text := ask(t, s, "POST", "/v1/run", `{"code":"ok"}`, "Authorization", header)
		requireError(t, code, text, 401, "unauthorized", "", "no valid token")
	}
	code, _ := ask(t, s, "POST", "/v1/run", `{"code":"ok"}`, "Authorization", "Bearer secret")
	require.Equal(t, 200, code)
	code, _ = ask(t, s, "GET", "/metrics", "")
	require.Equal(t, 401, code)
	require.Equal(t, HealthBody{Status: "ok", Tier: "full", Workers: 2},
		askFor[HealthBody](t, s, "GET", "/healthz", ""))
	require.NoError(t, s.Drain(t.Context()))
	code, text := ask(t, s, "GET", "/healthz", "")
	require.Equal(t, 503, code)
	require.Contains(t, text, `"draining"`)
	code, text = ask(t, s, "POST", "/v1/run", `{"code":"ok"}`, "Authorization", "Bearer secret")
	requireError(t, code, text, 503, "draining", "", "shutting down")
}

func TestMetrics(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}})
	for _, code := range []string{"ok", "timeout_cpu", "timeout_cpu", "break"} {
		ask(t, s, "POST", "/v1/run", fmt.Sprintf(`{"code":%q}`, code))
	}
	require.NoError(t, s.Drain(t.Context())) // a call is counted once it has been answered
	_, text := ask(t, s, "GET", "/metrics", "")
	for _, line := range []string{
		`ropewalk_sandbox_calls_total{status="ok"} 1`, `ropewalk_sandbox_calls_total{status="timeout_cpu"} 2`,
		`ropewalk_sandbox_calls_total{status="infrastructure"} 1`, `ropewalk_sandbox_calls_total{status="killed"} 0`,
		`ropewalk_sandbox_queue_calls 0`, `ropewalk_sandbox_queue_bytes 0`, `ropewalk_sandbox_service_seconds_count 4`,
		`ropewalk_sandbox_queue_seconds_count 4`,
		`ropewalk_sandbox_forks_total 5`, `ropewalk_sandbox_recycled_zygotes_total 1`, `ropewalk_sandbox_workers 2`,
		`ropewalk_sandbox_tier{tier="full"} 1`,
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
}

func TestLogsContainCodeOnlyIfConfigured(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var log bytes.Buffer
		s := newService(t, Options{Executor: &fake{}, LogCode: asked,
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		code, _ := ask(t, s, "POST", "/v1/run", `{"code":"my_program","stdin":"my_input"}`, traceHeader, "run/7")
		require.Equal(t, 200, code)
		require.NoError(t, s.Drain(t.Context()))
		require.Contains(t, log.String(), "trace=run/7")
		require.Contains(t, log.String(), "status=ok")
		require.Equal(t, asked, strings.Contains(log.String(), "my_program"))
		require.Equal(t, asked, strings.Contains(log.String(), "my_input"))
	}
}
