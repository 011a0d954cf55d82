package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// otlpSpan is what the test reads of a span in OTLP's JSON.
type otlpSpan struct {
	TraceID string `json:"traceId"`
	SpanID  string `json:"spanId"`
	Parent  string `json:"parentSpanId"`
	Name    string `json:"name"`
}

// collector keeps the spans that it is sent.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []otlpSpan
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []otlpSpan `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if r.URL.Path != "/v1/traces" || json.NewDecoder(r.Body).Decode(&got) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range got.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// Each step is a trace: from its workflow over the executions of its stages, on two workers, to the calls of tools and
// engines. The log names the spans, and the record is that of a run that is not traced.
func TestTracesFromWorkflowToCalls(t *testing.T) {
	t.Parallel()
	h, want := withBase(t)
	h = h.with("ROPEWALK_NO_WORKER=1")
	h.ensureUp(t)
	defer h.ensureDown(t)
	c := newCollector(t)
	traced := h.with("OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "ROPEWALK_LOG_LEVEL=info", "ROPEWALK_LOG_FORMAT=json")
	one, other := traced.startWorker(t, "--queues", "cpu,rollout,gpu"), traced.startWorker(t, "--queues", "sandbox")
	h.undisturbed(t, want, h.run(t, recipe("traced")...).ok(t).report(t))
	one.end(t)
	other.end(t) // and sends what is left

	c.mu.Lock()
	defer c.mu.Unlock()
	byID, traces := map[string]otlpSpan{}, map[string]int{}
	for _, s := range c.spans {
		byID[s.SpanID] = s
	}
	paths := map[string]int{}
	for _, s := range c.spans {
		path := s.Name
		for at := s; at.Parent != ""; {
			parent, ok := byID[at.Parent]
			require.True(t, ok, "%s has a parent that no one sent", path)
			require.Equal(t, s.TraceID, parent.TraceID, path)
			path, at = parent.Name+" > "+path, parent
		}
		paths[path]++
		traces[s.TraceID]++
	}
	require.Equal(t, steps, paths["step"], "%v", paths)
	require.Len(t, traces, steps)
	for _, path := range []string{"step > rollout > engine sample", "step > sandbox > tool python",
		"step > update > engine train", "step > reward", "step > publish"} {
		require.Positive(t, paths[path], "%s: %v", path, paths)
	}
	require.Equal(t, steps, paths["step > update"])
	sampled := 0
	for line := range strings.Lines(one.err.String()) {
		if strings.Contains(line, `"stage":"update"`) && strings.Contains(line, `"stage done"`) {
			var fields struct {
				Trace string `json:"trace_id"`
				Span  string `json:"span_id"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
			require.Equal(t, "update", byID[fields.Span].Name, line)
			require.Equal(t, fields.Trace, byID[fields.Span].TraceID)
			sampled++
		}
	}
	require.Equal(t, steps, sampled)
}
