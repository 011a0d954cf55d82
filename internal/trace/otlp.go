package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The parts of OTLP's JSON encoding that are used: opentelemetry-proto's trace.proto and common.proto, version 1. Ids
// are hexadecimal, and 64-bit numbers are texts.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Parent     string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes,omitempty"`
		Status     *status     `json:"status,omitempty"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	attribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

const (
	kindInternal = 1
	codeError    = 2
)

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributes(attrs []slog.Attr) (out []attribute) {
	for _, a := range attrs {
		v := map[string]any{}
		switch value := a.Value.Resolve(); value.Kind() {
		case slog.KindInt64:
			v["intValue"] = strconv.FormatInt(value.Int64(), 10)
		case slog.KindFloat64:
			v["doubleValue"] = value.Float64()
		case slog.KindBool:
			v["boolValue"] = value.Bool()
		default:
			v["stringValue"] = value.String()
		}
		out = append(out, attribute{a.Key, v})
	}
	return out
}

// Variables of OpenTelemetry that are read. A collector that is not named turns tracing off.
const (
	endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"        // its address, without /v1/traces
	tracesVariable   = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" // its whole address
	headersVariable  = "OTEL_EXPORTER_OTLP_HEADERS"         // NAME=VALUE,…, percent-encoded
	ratioVariable    = "OTEL_TRACES_SAMPLER_ARG"            // share of the steps that are traced; 1 if it is not set
)

// Sizes and times of sending.
const (
	mostQueued = 8192 // spans; further ones are dropped
	mostSent   = 512  // spans in a request
	sendEvery  = 2 * time.Second
	sendWithin = 10 * time.Second
	lastWithin = 5 * time.Second // for what is left when the tracer is closed
)

// FromEnv returns the tracer of a kind of process that the environment asks for; nil if it names no collector.
func FromEnv(kind string) (*Tracer, error) {
	address := os.Getenv(tracesVariable)
	if address == "" {
		if base := os.Getenv(endpointVariable); base != "" {
			address = strings.TrimSuffix(base, "/") + "/v1/traces"
		}
	}
	if address == "" {
		return nil, nil
	}
	if u, err := url.Parse(address); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("%s: want an address that begins with http:// or https://", endpointVariable)
	}
	headers := http.Header{"Content-Type": {"application/json"}}
	for _, pair := range strings.Split(os.Getenv(headersVariable), ",") {
		name, value, ok := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if strings.TrimSpace(pair) == "" {
			continue
		}
		if !ok || err != nil {
			return nil, fmt.Errorf("%s: want NAME=VALUE, with commas between them", headersVariable)
		}
		headers.Set(strings.TrimSpace(name), plain)
	}
	ratio := 1.0
	if text := os.Getenv(ratioVariable); text != "" {
		var err error
		if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("%s is %q: want a number from 0 to 1", ratioVariable, text)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	e := &exporter{address: address, headers: headers, queue: make(chan span, mostQueued), quit: make(chan struct{}),
		resource: resource{attributes([]slog.Attr{slog.String("service.name", "ropewalk-"+kind),
			slog.String("host.name", host), slog.Int("process.pid", os.Getpid())})}}
	e.sending.Go(e.run)
	return &Tracer{ratio: ratio, exporter: e}, nil
}

// Close sends what is left, for a few seconds at most.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	t.exporter.once.Do(func() { close(t.exporter.quit) })
	t.exporter.sending.Wait()
	return nil
}

// exporter sends spans from its queue.
type exporter struct {
	address  string
	headers  http.Header
	resource resource
	queue    chan span
	quit     chan struct{}
	once     sync.Once
	sending  sync.WaitGroup
	dropped  atomic.Int64 // since the last line about it
}

func (e *exporter) put(s span) {
	select {
	case e.queue <- s:
	default:
		e.dropped.Add(1)
	}
}

func (e *exporter) run() {
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.flush(context.Background(), sendWithin)
		case <-e.quit:
			e.flush(context.Background(), lastWithin)
			return
		}
	}
}

// flush sends what is queued. What cannot be sent is dropped.
func (e *exporter) flush(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for len(e.queue) > 0 {
		var batch []span
		for len(batch) < mostSent && len(e.queue) > 0 {
			batch = append(batch, <-e.queue)
		}
		if err := e.send(ctx, batch); err != nil {
			slog.Warn("send spans", "spans", len(batch), "error", err)
		}
	}
	if dropped := e.dropped.Swap(0); dropped > 0 {
		slog.Warn("spans were dropped, because more came than could be sent", "spans", dropped)
	}
}

func (e *exporter) send(ctx context.Context, batch []span) error {
	body, err := json.Marshal(request{[]resourceSpans{{e.resource, []scopeSpans{{scope{"ropewalk"}, batch}}}}})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the collector's address is not a URL") // its text may hold a password
	}
	r.Header = e.headers
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)) // so that the connection can be used again
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", answer.Status)
	}
	return nil
}
