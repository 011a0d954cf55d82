package service

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// hangs is how long a test waits for what must happen. Only a test that hangs waits so long.
const hangs = 5 * time.Minute

// fake returns the verdict that a call's code names, and echoes its stdin.
type fake struct {
	hold chan struct{} // calls with the code "hold" wait for it

	mu   sync.Mutex
	seen []sandbox.Call
}

func (f *fake) Workers() int         { return 2 }
func (f *fake) Close() error         { return nil }
func (f *fake) Isolation() string    { return string(sandbox.TierFull) }
func (f *fake) Stats() sandbox.Stats { return sandbox.Stats{Forks: 5, Recycled: 1, Workers: 2} }

func (f *fake) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	out := make([]sandbox.Result, len(calls))
	for i, c := range calls {
		f.mu.Lock()
		f.seen = append(f.seen, c)
		f.mu.Unlock()
		switch {
		case c.Language != "" && c.Language != sandbox.Python && c.Language != sandbox.Bash:
			return out, sandbox.CallErrors{fmt.Errorf("%w: language %q is not offered", sandbox.ErrBadCall, c.Language)}
		case c.Code == "panic":
			panic("no verdict")
		case c.Code == "break":
			return nil, fmt.Errorf("%w: the zygote is gone", sandbox.ErrInfrastructure)
		case c.Code == "aside":
			sandbox.Aside(ctx)
			select {
			case <-f.hold:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case c.Code == "hold":
			select {
			case <-f.hold:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		out[i] = f.verdict(c)
	}
	return out, nil
}

func (f *fake) verdict(c sandbox.Call) sandbox.Result {
	r := sandbox.Result{Status: sandbox.StatusOK, Stdout: c.Stdin,
		Timing: sandbox.Timing{Wall: 2e9, CPU: 1e9, PeakMemory: 7}}
	for _, status := range sandbox.Statuses() {
		if c.Code == string(status) && status != sandbox.StatusOK {
			r.Status, r.ExitCode, r.Stderr, r.Traceback = status, 1, "it failed", "it failed"
		}
	}
	if r.Status == sandbox.StatusKilled || r.Status == sandbox.StatusTimeoutWall {
		r.ExitCode, r.Signal = -1, "SIGKILL"
	}
	for _, name := range c.Collect {
		for _, file := range c.Files {
			if file.Name == name {
				r.Files = append(r.Files, file)
			}
		}
	}
	return r
}

func (f *fake) runs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.seen)
}

func (f *fake) last() sandbox.Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[len(f.seen)-1]
}

// OpenSession opens sessions that count their cells.
func (f *fake) OpenSession(_ context.Context, packages string, _ sandbox.Limits) (sandbox.Session, error) {
	if packages == "none" {
		return nil, fmt.Errorf("%w: packages %q are not offered", sandbox.ErrBadCall, packages)
	}
	return &counter{}, nil
}

type counter struct {
	cells  int
	closed bool
}

func (c *counter) Run(_ context.Context, cell sandbox.Call) (sandbox.Result, error) {
	if cell.Code == "exit" {
		c.closed = true
	}
	if c.closed {
		return sandbox.Result{}, fmt.Errorf("%w: it has exited", sandbox.ErrSessionEnded)
	}
	c.cells++
	return sandbox.Result{Status: sandbox.StatusOK, Value: fmt.Sprint(c.cells)}, nil
}

func (c *counter) Close() error { c.closed = true; return nil }

func newService(t *testing.T, o Options) *Service {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := New(o)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// ask sends a request and returns the status and text of the answer.
func ask(t *testing.T, s *Service, method, path, body string, header ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	text, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Code, string(text)
}

// askFor is ask, with the answer decoded into a value.
func askFor[T any](t *testing.T, s *Service, method, path, body string) T {
	t.Helper()
	code, text := ask(t, s, method, path, body)
	require.Less(t, code, 300, text)
	var out T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&out), text)
	return out
}

// requireError requires that a request is refused in the expected way.
func requireError(t *testing.T, code int, text string, want int, kind, field, message string) {
	t.Helper()
	require.Equal(t, want, code, text)
	var body ErrorBody
	require.NoError(t, json.Unmarshal([]byte(text), &body), text)
	require.Equal(t, kind, body.Error.Kind)
	require.Equal(t, field, body.Error.Field)
	require.Contains(t, body.Error.Message, message)
}
