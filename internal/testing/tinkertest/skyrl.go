// Package tinkertest is a server that speaks the Tinker API, for tests: LoRA adapters of a small base, trained with the
// gradients of the CPU engine. It can divide gradients in the ways of different servers, and a test can take requests
// away from it.
//
// The gradient of an adapter follows from that of the whole weight: for W + s·B·A it is
// dB = s·dW·Aᵀ and dA = s·Bᵀ·dW. The engine gives dW as the move of one optimiser step whose epsilon is far greater
// than any gradient.
package tinkertest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/servertest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// Python finds the Python that has SkyRL: ROPEWALK_TINKER_PYTHON, or the one that tools/worlds.sh makes. Without one
// the test is skipped, or fails if ROPEWALK_REQUIRE_TINKER is set.
func Python(t testing.TB) string {
	t.Helper()
	return servertest.Find(t, "ROPEWALK_TINKER_PYTHON", "ROPEWALK_REQUIRE_TINKER",
		filepath.Join("worlds", "tinker", "bin", "python"), "tools/worlds.sh tinker")
}

// folder is that of this file.
func folder(t testing.TB) string {
	t.Helper()
	return servertest.Path(t, "internal", "testing", "tinkertest")
}

// Real is a running server of SkyRL.
type Real = servertest.Process

// Start starts SkyRL's server on loopback with the base model in a folder, whose path is the model's name. The server
// and its engine end with the test.
func Start(t testing.TB, model string) *Real {
	t.Helper()
	variables := []string{"JAX_PLATFORMS=cpu", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1",
		fmt.Sprintf("OMP_NUM_THREADS=%d", max(1, runtime.GOMAXPROCS(0)))}
	p := servertest.Launch(t, "SkyRL's server", "/api/v1/healthz", variables, func(port string) []string {
		return []string{Python(t), filepath.Join(folder(t), "testdata", "serve.py"), port, model, t.TempDir()}
	})
	p.Wait(t)
	return p
}

// Model writes a tiny Qwen3 with a tokenizer that transformers reads, which SkyRL can serve.
func Model(t testing.TB, seed uint64) (dir string, s checkpoint.Shape) {
	t.Helper()
	tokens, err := tokenizer.New([]string{"<|end|>"})
	require.NoError(t, err)
	end, _ := tokens.ID("<|end|>")
	s = checkpoint.Shape{Vocab: tokens.VocabSize(), Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 96,
		Positions: 256, RopeTheta: 10000, NormEps: 1e-6, Pad: -1, EOS: []int32{end}}
	dir = filepath.Join(t.TempDir(), "policy")
	c, err := checkpoint.Fresh(s, seed)
	require.NoError(t, err)
	for _, w := range c.Weights {
		for i := range w.Data {
			w.Data[i] *= 2 // so that distributions are neither flat nor certain
		}
	}
	_, err = checkpoint.Write(dir, c)
	require.NoError(t, err)
	for name, text := range tokens.Files() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	return dir, s
}
