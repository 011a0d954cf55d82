package serverstest

import (
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/servertest"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// FindVLLM finds the program vllm: at ROPEWALK_VLLM, or where tools/vllm.sh puts it. Without one the test is skipped,
// or fails if ROPEWALK_REQUIRE_VLLM is set.
func FindVLLM(t testing.TB) string {
	t.Helper()
	return servertest.Find(t, "ROPEWALK_VLLM", "ROPEWALK_REQUIRE_VLLM", filepath.Join("vllm", "bin", "vllm"),
		"tools/vllm.sh")
}

// vllmSettings are those of a tiny model on one core, with numbers that are as exact as ours. Requests that have a seed
// end vLLM on a processor when a prompt is taken in chunks.
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
