package trace

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// collector keeps what it is sent.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []span
	header http.Header
	status int
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		var got request
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil || r.URL.Path != "/v1/traces" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, resource := range got.ResourceSpans {
			for _, scoped := range resource.ScopeSpans {
				c.spans = append(c.spans, scoped.Spans...)
			}
		}
		c.header = r.Header.Clone()
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	t.Setenv(endpointVariable, c.URL+"/")
	return c
}

func TestSpansMeetInOneTrace(t *testing.T) {
	c := newCollector(t)
	t.Setenv(headersVariable, "Authorization=Bearer%20abc, X-Scope=a")
	one, err := FromEnv("worker")
	require.NoError(t, err)
	other, err := FromEnv("worker") // on another host
	require.NoError(t, err)

	ctx, stage := Start(one.Step(t.Context(), "r", 3, 0), "rollout", slog.Int("shard", 2), slog.Float64("x", 0.5))
	require.Len(t, IDs(ctx), 2)
	traceID, spanID := Current(ctx)
	_, call := Start(ctx, "tool python", slog.Bool("all", true))
	call.End("")
	stage.End("timeout", slog.Int64("rows", 7))
	_, update := Start(other.Step(t.Context(), "r", 3, 0), "update")
	update.End("")
	began := time.Unix(100, 5)
	other.Root("r", 3, 0, began, began.Add(time.Second))
	require.NoError(t, one.Close())
	require.NoError(t, other.Close())
	require.NoError(t, other.Close())

	byName := map[string]span{}
	for _, s := range c.spans {
		byName[s.Name] = s
	}
	require.Len(t, byName, 4)
	root := byName["step"]
	require.Empty(t, root.Parent)
	require.Equal(t, "100000000005", root.Start)
	require.Equal(t, "101000000005", root.End)
	for name, parent := range map[string]string{"rollout": root.SpanID, "update": root.SpanID,
		"tool python": byName["rollout"].SpanID} {
		require.Equal(t, parent, byName[name].Parent, name)
		require.Equal(t, root.TraceID, byName[name].TraceID, name)
	}
	require.Equal(t, []string{root.TraceID, byName["rollout"].SpanID}, []string{traceID, spanID})
	require.Len(t, root.TraceID, 32)
	require.Len(t, root.SpanID, 16)
	require.Equal(t, &status{2, "timeout"}, byName["rollout"].Status)
	require.Nil(t, byName["update"].Status)
	require.Equal(t, []attribute{{"shard", map[string]any{"intValue": "2"}}, {"x", map[string]any{"doubleValue": 0.5}},
		{"rows", map[string]any{"intValue": "7"}}}, byName["rollout"].Attributes)
	require.Equal(t, "Bearer abc", c.header.Get("Authorization"))
	require.Equal(t, "a", c.header.Get("X-Scope"))
}

// All workers sample the same steps, about as many as the ratio says.
func TestSampling(t *testing.T) {
	newCollector(t)
	for text, want := range map[string][2]int{"0": {0, 0}, "0.25": {150, 350}, "1": {1000, 1000}} {
		t.Setenv(ratioVariable, text)
		a, err := FromEnv("worker")
		require.NoError(t, err)
		b, err := FromEnv("worker")
		require.NoError(t, err)
		n := 0
		for i := range 1000 {
			id, _ := ids(fmt.Sprint("run", i%7), i, 0)
			require.Equal(t, a.sampled(id), b.sampled(id))
			if a.sampled(id) {
				n++
				require.NotNil(t, IDs(a.Step(t.Context(), fmt.Sprint("run", i%7), i, 0)))
			}
		}
		require.GreaterOrEqual(t, n, want[0], text)
		require.LessOrEqual(t, n, want[1], text)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
}

func TestOffUnlessACollectorIsNamed(t *testing.T) {
	t.Setenv(endpointVariable, "")
	t.Setenv(tracesVariable, "")
	none, err := FromEnv("worker")
	require.NoError(t, err)
	require.Nil(t, none)
	ctx, s := Start(none.Step(t.Context(), "r", 1, 0), "x")
	require.Nil(t, s)
	require.Nil(t, IDs(ctx))
	traceID, spanID := Current(ctx)
	require.Empty(t, traceID+spanID)
	s.End("")
	none.Root("r", 1, 0, time.Now(), time.Now())
	require.NoError(t, none.Close())
}

func TestSettingsThatAreWrong(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{endpointVariable, "collector:4317", "want an address that begins with http://"},
		{ratioVariable, "2", "want a number from 0 to 1"}, {ratioVariable, "NaN", "want a number from 0 to 1"},
		{headersVariable, "Authorization", "want NAME=VALUE"},
	} {
		t.Run(c.name+" "+c.value, func(t *testing.T) {
			t.Setenv(endpointVariable, "http://127.0.0.1:1")
			t.Setenv(c.name, c.value)
			_, err := FromEnv("worker")
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A collector that is away, or refuses, holds up no one; what does not fit is dropped.
func TestACollectorThatIsAway(t *testing.T) {
	c := newCollector(t)
	c.status = http.StatusServiceUnavailable
	tracer, err := FromEnv("worker")
	require.NoError(t, err)
	for range 2 * mostQueued {
		_, s := Start(tracer.Step(t.Context(), "r", 1, 0), "x")
		s.End("")
	}
	require.NoError(t, tracer.Close())
	require.Empty(t, tracer.exporter.queue)
}
