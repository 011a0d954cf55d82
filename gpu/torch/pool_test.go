package torch

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python/pythontest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// tiny is a model that tests train in milliseconds.
var tiny = checkpoint.Shape{
	Vocab: 23, Hidden: 16, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, FFN: 24, Positions: 128, RopeTheta: 10000, NormEps: 1e-6, EOS: []int32{3}, Pad: -1,
}

func initialised(t testing.TB, s checkpoint.Shape, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, checkpoint.Init(dir, s, seed, map[string][]byte{"tokenizer.json": []byte("{}")}))
	return dir
}

// real are options for the engine itself; the test is skipped where Python has no torch.
func real(t testing.TB) Options {
	t.Helper()
	exe, err := filepath.Abs(pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors"))
	require.NoError(t, err)
	return Options{
		Python: exe, Deterministic: true, Threads: 2, StartLimit: 2 * time.Minute,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

func closePool() {}
