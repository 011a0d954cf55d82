// Package serverstest starts real inference servers for tests.
package serverstest

import (
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/servertest"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// Process is a running server.
type Process = servertest.Process

// Find finds llama.cpp's server: at ROPEWALK_LLAMA_SERVER, or where tools/llama-server.sh puts it. Without one
// the test is skipped, or fails if ROPEWALK_REQUIRE_LLAMA_SERVER is set.
func Find(t testing.TB) string {
	t.Helper()
	return servertest.Find(t, "ROPEWALK_LLAMA_SERVER", "ROPEWALK_REQUIRE_LLAMA_SERVER", "llama-server",
		"tools/llama-server.sh")
}

// Exact are the settings with which llama-server computes as we do: keys and values in float32, and no flash attention.
var Exact = []string{"--cache-type-k", "f32", "--cache-type-v", "f32", "-fa", "off"}

// Start starts llama-server on loopback.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	p := launch(t, Find(t), nil, append([]string{"--threads", "1", "--parallel", "4", "--no-warmup"}, args...)...)
	p.Wait(t)
	return p
}

// launch starts a program that serves at --host and --port.
func launch(t testing.TB, program string, variables []string, args ...string) *Process {
	t.Helper()
	return servertest.Launch(t, program, "/health", variables, func(port string) []string {
		return append(append([]string{program}, args...), "--host", "127.0.0.1", "--port", port)
	})
}

// Router starts llama-server as a router over a new folder.
func Router(t testing.TB, args ...string) (*Process, servers.Server) {
	t.Helper()
	dir := t.TempDir()
	p := Start(t, append([]string{"--models-dir", dir}, args...)...)
	return p, servers.Server{Kind: servers.KindLlama, URL: p.URL, Folder: dir, Model: "policy", Parallel: 4,
		Seconds: 60, LoadSeconds: 60}
}
