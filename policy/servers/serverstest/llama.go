// Package serverstest starts real inference servers for tests.
package serverstest

import (
	"testing"

	"github.com/ropewalk/ropewalk/policy/servers"
)

// Find finds llama.cpp's server: at ROPEWALK_LLAMA_SERVER, or where tools/llama-server.sh puts it. Without one
// the test is skipped, or fails if ROPEWALK_REQUIRE_LLAMA_SERVER is set.
func Find(t testing.TB) string {
	t.Helper()
	return find(t, "ROPEWALK_LLAMA_SERVER", "ROPEWALK_REQUIRE_LLAMA_SERVER", "llama-server", "tools/llama-server.sh")
}

// Exact are the settings with which llama-server computes as we do: keys and values in float32, and no flash attention.
var Exact = []string{"--cache-type-k", "f32", "--cache-type-v", "f32", "-fa", "off"}

// Start starts llama-server on loopback.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	return start(t, Find(t), nil, append([]string{"--threads", "1", "--parallel", "4", "--no-warmup"}, args...)...)
}

// Router starts llama-server as a router over a new folder.
func Router(t testing.TB, args ...string) (*Process, servers.Server) {
	t.Helper()
	dir := t.TempDir()
	p := Start(t, append([]string{"--models-dir", dir}, args...)...)
	return p, servers.Server{Kind: servers.KindLlama, URL: p.URL, Folder: dir, Model: "policy", Parallel: 4,
		Seconds: 60, LoadSeconds: 60}
}
