// Package tracetest is an OpenTelemetry collector for tests. It keeps the spans that it is sent, and says which span
// each of them is below.
package tracetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/trace"
)

// Span is one span that was sent.
type Span struct {
	TraceID, SpanID, Parent string // hexadecimal; Parent is "" for a root
	Name                    string
	Path                    string            // names of the spans that it is below, and its own: "step > rollout"
	Failure                 string            // the kind of the failure; "" if nothing went wrong
	Attributes              map[string]string // values as texts
}

// Collector receives spans until its test ends.
type Collector struct {
	URL string // for OTEL_EXPORTER_OTLP_ENDPOINT

	mu    sync.Mutex
	spans []Span
}

// New starts a collector.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(c.receive))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Tracer returns a tracer of all steps that sends to the collector. The caller closes it before it asks for Spans.
func (c *Collector) Tracer(t *testing.T) *trace.Tracer {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	tracer, err := trace.FromEnv("test")
	require.NoError(t, err)
	return tracer
}

// sent is what the collector reads of OTLP's JSON.
type sent struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct {
				TraceID    string `json:"traceId"`
				SpanID     string `json:"spanId"`
				Parent     string `json:"parentSpanId"`
				Name       string `json:"name"`
				Attributes []struct {
					Key   string         `json:"key"`
					Value map[string]any `json:"value"`
				} `json:"attributes"`
				Status struct {
					Message string `json:"message"`
				} `json:"status"`
			} `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

func (c *Collector) receive(w http.ResponseWriter, r *http.Request) {
	var got sent
	if r.URL.Path != "/v1/traces" || json.NewDecoder(r.Body).Decode(&got) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range got.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				out := Span{TraceID: s.TraceID, SpanID: s.SpanID, Parent: s.Parent, Name: s.Name,
					Failure: s.Status.Message, Attributes: map[string]string{}}
				for _, a := range s.Attributes {
					for _, value := range a.Value { // of one kind
						out.Attributes[a.Key] = fmt.Sprint(value)
					}
				}
				c.spans = append(c.spans, out)
			}
		}
	}
}

// Spans returns the spans that have come so far, with their paths. Where a parent was not sent, the path ends below it.
// A parent of another trace fails the test.
func (c *Collector) Spans(t testing.TB) []Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]Span{}
	for _, s := range c.spans {
		byID[s.SpanID] = s
	}
	out := make([]Span, len(c.spans))
	for i, s := range c.spans {
		s.Path = s.Name
		for at, ok := byID[s.Parent]; ok; at, ok = byID[at.Parent] {
			require.Equal(t, s.TraceID, at.TraceID, "the trace of %s and of %s, which it is below", s.Path, at.Name)
			s.Path = at.Name + " > " + s.Path
		}
		out[i] = s
	}
	return out
}
