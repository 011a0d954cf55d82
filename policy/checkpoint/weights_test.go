package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWeightsDigestDefinition pins the weights digest to its definition, so that other programs can compute it.
func TestWeightsDigestDefinition(t *testing.T) {
	b := raw(t, map[string]any{
		"b": map[string]any{"dtype": "F32", "shape": []int{1, 2}, "data_offsets": []int{0, 8}},
		"a": map[string]any{"dtype": "BF16", "shape": []int{}, "data_offsets": []int{8, 10}},
	}, []byte("01234567xy"))
	lines, err := TensorLines(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	// printf 01234567 | sha256sum; printf xy | sha256sum
	of := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	require.Equal(t, []string{`"b" F32 1,2 ` + of("01234567") + "\n", `"a" BF16  ` + of("xy") + "\n"}, lines)
	require.Equal(t, of(lines[1]+lines[0]), WeightsOf(lines))
	for n := range len(b) {
		_, err := TensorLines(bytes.NewReader(b[:n]), int64(n))
		require.ErrorIs(t, err, ErrCorrupt, "cut to %d bytes", n)
	}
}

func weightsDigest(t *testing.T, dir string) string {
	t.Helper()
	digest, err := WeightsDigest(dir)
	require.NoError(t, err)
	return digest
}

// The weights digest knows neither file names, nor how tensors are shared out among files, nor training state; one bit
// of a weight changes it.
func TestWeightsDigestIsOfTheWeightsAlone(t *testing.T) {
	dir := t.TempDir()
	whole, cut, plain, other := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c"),
		filepath.Join(dir, "d")
	c := withOptimizer(t, small)
	_, err := Write(whole, c)
	require.NoError(t, err)
	want := weightsDigest(t, whole)

	require.NoError(t, os.MkdirAll(cut, 0o755))
	require.NoError(t, writeFile(cut, "model-00001-of-00002.safetensors", c.Weights[3:], nil, F32))
	require.NoError(
		t, writeFile(cut, "model-00002-of-00002.safetensors", c.Weights[:3], map[string]string{"format": "pt"}, F32),
	)
	require.NoError(t, os.WriteFile(filepath.Join(cut, FileIndex), []byte("{}"), 0o644))
	require.Equal(t, want, weightsDigest(t, cut))

	c.Optimizer = nil
	_, err = Write(plain, c)
	require.NoError(t, err)
	require.Equal(t, want, weightsDigest(t, plain))

	c.Weights[1].Data[0]++
	_, err = Write(other, c)
	require.NoError(t, err)
	require.NotEqual(t, want, weightsDigest(t, other))
}

// Other programs take weights by patterns: vLLM loads every match of the first of these that matches anything in a
// folder, and downloads from the hub match the same ones in all folders. Nothing but the model may match.
func TestOtherProgramsTakeTheModelAlone(t *testing.T) {
	critic := small
	critic.ValueHead = true
	dir := filepath.Join(t.TempDir(), "c")
	_, err := Write(dir, withOptimizer(t, critic))
	require.NoError(t, err)
	var taken []string
	for _, pattern := range []string{"*.safetensors", "*.bin", "*.pt", "*.pth", "*.npz", "*.gguf", "consolidated*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		for _, f := range found {
			taken = append(taken, filepath.Base(f))
		}
	}
	require.Equal(t, []string{FileWeights}, taken)
	for _, name := range []string{FileOptimizer, FileValueHead} {
		require.FileExists(t, filepath.Join(dir, name))
	}
}
