package tracetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/transcript"
)

// relay is the configuration of a collector that sends on what it receives. Its answer follows that of the next
// collector.
const relay = `yaml:
receivers:
  otlp: {protocols: {http: {endpoint: %q}}}
exporters:
  otlphttp: {endpoint: %q, encoding: json, compression: none, sending_queue: {enabled: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlphttp]}
`

// Through puts the OpenTelemetry project's collector before this one, so that Spans returns what that collector has
// understood, and leads URL there. Where tools/build.sh otelcol has not built it, it changes nothing and returns false;
// with ROPEWALK_REQUIRE_COLLECTOR it fails the test.
func (c *Collector) Through(t testing.TB) bool {
	t.Helper()
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
	cmd := exec.Command(program, "--config", fmt.Sprintf(relay, address, c.URL))
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
