package e2e

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/tracetest"
	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/internal/trace"
)

// collectorVariable asks for the project's collector.
const collectorVariable = "ROPEWALK_TEST_COLLECTOR"

// passesOn is the configuration of a collector that sends on what it receives. Its answer follows that of the next
// collector.
const passesOn = `yaml:
receivers:
  otlp: {protocols: {http: {endpoint: %q}}}
exporters:
  otlphttp: {endpoint: %q, encoding: json, compression: none, sending_queue: {enabled: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlphttp]}
`

// through puts the OpenTelemetry project's collector before one of ours, so that Spans returns what that collector has
// understood, and leads URL there. Unless that is asked for and tools/build.sh otelcol has built it, it changes nothing
// and returns false; with ROPEWALK_REQUIRE_COLLECTOR it fails the test.
func through(t *testing.T, c *tracetest.Collector) bool {
	t.Helper()
	if !longform.Asked(collectorVariable) {
		return false
	}
	program, err := stack.FindTool("otelcol")
	if err != nil {
		if os.Getenv("ROPEWALK_REQUIRE_COLLECTOR") != "" {
			t.Fatalf("ROPEWALK_REQUIRE_COLLECTOR is set, and otelcol is missing: tools/build.sh otelcol")
		}
		return false
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	said := &transcript.Transcript{}
	cmd := exec.Command(program, "--config", fmt.Sprintf(passesOn, address, c.URL))
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		if t.Failed() {
			t.Logf("otelcol said:\n%s", said)
		}
	})
	const patience = time.Minute
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			require.NoError(t, conn.Close())
			c.URL = "http://" + address
			return true
		}
		require.True(t, time.Now().Before(end), "otelcol does not answer after %s: %s", patience, said)
	}
}

// The OpenTelemetry project's collector understands the spans: it sends on the same ones, with all that they hold.
func TestARealCollector(t *testing.T) {
	longform.Need(t, collectorVariable, "test-traces")
	send := func(c *tracetest.Collector) []tracetest.Span {
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
	want := send(tracetest.New(t))
	require.Len(t, want, 3)
	c := tracetest.New(t)
	if !through(t, c) {
		t.Skip("otelcol is missing: tools/build.sh otelcol")
	}
	require.ElementsMatch(t, want, send(c))
}
