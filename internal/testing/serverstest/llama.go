// Package serverstest starts real inference servers for tests.
package serverstest

import (
	"path/filepath"
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

// FindVLLM finds the program vllm: at ROPEWALK_VLLM, or where tools/vllm.sh puts it. Without one the test is skipped,
// or fails if ROPEWALK_REQUIRE_VLLM is set.
func FindVLLM(t testing.TB) string {
	t.Helper()
	return servertest.Find(t, "ROPEWALK_VLLM", "ROPEWALK_REQUIRE_VLLM", filepath.Join("vllm", "bin", "vllm"),
		"tools/vllm.sh")
}

// vllmSettings suit a tiny model on one core, with numbers that are as exact as ours. Requests that have a seed end
// vLLM on a processor when a prompt is taken in chunks.
var vllmSettings = []string{"--dtype", "float32", "--enforce-eager", "--generation-config", "vllm",
	"--no-enable-chunked-prefill", "--max-logprobs", "512", "--max-num-seqs", "64",
	"--served-model-name", "policy"}

// vllmVariables keep vLLM on one core of this machine: it listens on loopback alone, and asks no one.
var vllmVariables = []string{"VLLM_SERVER_DEV_MODE=1", "VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind",
	"OMP_NUM_THREADS=1", "VLLM_HOST_IP=127.0.0.1", "GLOO_SOCKET_IFNAME=lo", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1",
	"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "VLLM_LOGGING_LEVEL=WARNING",
	"VLLM_WORKER_MULTIPROCESSING_METHOD=fork"}

// VLLM starts vLLM on loopback with the model in a folder, whose output head must not be its embedding. New weights go
// to another folder. Wait waits for the server.
func VLLM(t testing.TB, model string, args ...string) (*Process, servers.Server) {
	t.Helper()
	p := launch(t, FindVLLM(t), vllmVariables, append(append([]string{"serve", model}, vllmSettings...), args...)...)
	return p, servers.Server{Kind: servers.KindVLLM, URL: p.URL, Folder: t.TempDir(), Model: "policy", Parallel: 32,
		Seconds: 120, LoadSeconds: 120}
}
