package tracetest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/trace"
)

// The OpenTelemetry project's collector understands the spans: it sends on the same ones, with all that they hold.
func TestARealCollector(t *testing.T) {
	send := func(c *Collector) []Span {
		tracer := c.Tracer(t)
		ctx, stage := trace.Start(tracer.Step(t.Context(), "r", 3, 0), "rollout", slog.Int("shard", 2),
			slog.Float64("x", 0.5))
		_, call := trace.Start(ctx, "tool python", slog.Bool("all", true))
		call.End("")
		stage.End("timeout", slog.Int64("rows", 7), slog.String("note", "ümlaut"))
		tracer.Root("r", 3, 0, time.Unix(100, 5), time.Unix(101, 5))
		require.NoError(t, tracer.Close())
		spans := c.Spans(t)
		for i := range spans {
			if spans[i].Name != "step" { // these ids are random
				spans[i].SpanID, spans[i].Parent = "", ""
			}
		}
		return spans
	}
	want := send(New(t))
	require.Len(t, want, 3)
	c := New(t)
	if !c.Through(t) {
		t.Skip("otelcol is missing: tools/build.sh otelcol")
	}
	require.ElementsMatch(t, want, send(c))
}
