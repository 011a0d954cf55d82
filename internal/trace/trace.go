// Package trace records where the time of a run's steps goes, as spans of OpenTelemetry, and sends them over OTLP (HTTP
// with JSON). It is off unless the environment names a collector.
//
// A *trace* is one step of a run. Its id, and the id of its *root* span, follow from run, step and generation, so that
// every worker knows them and workflows carry nothing: spans of one step meet in one trace wherever its stages run.
// Below the root are the executions of stages, and below these the uses of engines and the batches of tool calls. Where
// an activity takes a shard to its end, its span "episodes" is in between: below it are also the single responses and
// calls that it works ahead on, which belong to no execution of a stage.
// Whether a step is *sampled* also follows from its id, so that all workers decide alike.
//
//	FromEnv → Tracer.Step(ctx) → Start(ctx) → Span.End ─┐
//	          Tracer.Root ──────────────────────────────┴→ queue → POST /v1/traces
//
// Spans are measured and never part of the record. What does not fit into the queue, or cannot be sent, is dropped and
// logged: a collector that is away holds up no stage.
package trace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"
)

type (
	traceID [16]byte
	spanID  [8]byte
)

// here is the span that a context is in.
type here struct {
	tracer *Tracer
	trace  traceID
	span   spanID
	attrs  []slog.Attr // of the spans that begin here
}

type key struct{}

// Tracer collects spans and sends them. Make one with FromEnv; a nil Tracer traces nothing. It is safe for concurrent
// use.
type Tracer struct {
	ratio    float64 // of the steps that are traced
	exporter *exporter
}

// ids derives the ids of a step's trace and of its root span.
func ids(run string, step, gen int) (traceID, spanID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "trace\x00%s\x00%d\x00%d", run, step, gen))
	return traceID(sum[:16]), spanID(sum[16:24])
}

// sampled reports whether a step is traced.
func (t *Tracer) sampled(id traceID) bool {
	return float64(binary.BigEndian.Uint64(id[8:])) < t.ratio*math.MaxUint64 || t.ratio >= 1
}

// Step returns a context in the trace of a step, if the step is sampled. A context that is in the trace stays where it
// is.
func (t *Tracer) Step(ctx context.Context, run string, step, gen int) context.Context {
	if t == nil {
		return ctx
	}
	id, root := ids(run, step, gen)
	if at, in := ctx.Value(key{}).(here); !t.sampled(id) || in && at.trace == id {
		return ctx
	}
	return context.WithValue(ctx, key{}, here{tracer: t, trace: id, span: root})
}

// Root records the root span of a step, which no process sees from beginning to end.
func (t *Tracer) Root(run string, step, gen int, begin, end time.Time) {
	if t == nil {
		return
	}
	id, root := ids(run, step, gen)
	if !t.sampled(id) {
		return
	}
	s := &Span{at: here{tracer: t, trace: id, span: root}, name: "step", begin: begin,
		attrs: []slog.Attr{slog.String("run", run), slog.Int("step", step), slog.Int("generation", gen)}}
	s.end(end, nil)
}

// Span is a stretch of time in a trace. A nil Span records nothing.
type Span struct {
	at     here
	parent spanID
	name   string
	begin  time.Time
	attrs  []slog.Attr
}

// With returns a context whose spans have the attributes; ctx itself if it is in no span. The attributes must hold no
// prompts, code or secrets.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	at, ok := ctx.Value(key{}).(here)
	if !ok {
		return ctx
	}
	at.attrs = append(slices.Clip(at.attrs), attrs...)
	return context.WithValue(ctx, key{}, at)
}

// Start begins a span below the one that ctx is in, and returns a context in the new one; nil if ctx is in none. The
// attributes must hold no prompts, code or secrets.
func Start(ctx context.Context, name string, attrs ...slog.Attr) (context.Context, *Span) {
	at, ok := ctx.Value(key{}).(here)
	if !ok {
		return ctx, nil
	}
	s := &Span{at: at, parent: at.span, name: name, begin: time.Now(),
		attrs: append(slices.Clip(at.attrs), attrs...)}
	_, _ = rand.Read(s.at.span[:]) // it never fails
	return context.WithValue(ctx, key{}, s.at), s
}

// Current returns the ids of the trace and of the span that ctx is in, in hexadecimal; "" if it is in none.
func Current(ctx context.Context) (traceID, spanID string) {
	at, ok := ctx.Value(key{}).(here)
	if !ok {
		return "", ""
	}
	return hex.EncodeToString(at.trace[:]), hex.EncodeToString(at.span[:])
}

// IDs returns the ids of the trace and of the span that ctx is in, for the log; nil if it is in none.
func IDs(ctx context.Context) []slog.Attr {
	trace, span := Current(ctx)
	if trace == "" {
		return nil
	}
	return []slog.Attr{slog.String("trace_id", trace), slog.String("span_id", span)}
}

// End ends the span. failure names what went wrong, by its kind alone; "" if nothing did.
func (s *Span) End(failure string, attrs ...slog.Attr) {
	if s == nil {
		return
	}
	s.attrs = append(s.attrs, attrs...)
	s.end(time.Now(), &failure)
}

func (s *Span) end(at time.Time, failure *string) {
	out := span{TraceID: hex.EncodeToString(s.at.trace[:]), SpanID: hex.EncodeToString(s.at.span[:]), Name: s.name,
		Kind: kindInternal, Start: nanos(s.begin), End: nanos(at), Attributes: attributes(s.attrs)}
	if s.parent != (spanID{}) {
		out.Parent = hex.EncodeToString(s.parent[:])
	}
	if failure != nil && *failure != "" {
		out.Status = &status{Code: codeError, Message: *failure}
	}
	s.at.tracer.exporter.put(out)
}
