package torch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// rewritten is a copy of the tiny model's folder with its weights changed.
func rewritten(t *testing.T, change func([]checkpoint.Tensor) []checkpoint.Tensor) string {
	t.Helper()
	dir := initialised(t, tiny, 3)
	path := filepath.Join(dir, checkpoint.FileWeights)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := checkpoint.DecodeSafetensors(b)
	require.NoError(t, err)
	out, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, checkpoint.EncodeSafetensors(out, change(f.Tensors), map[string]string{"format": "pt"}))
	require.NoError(t, out.Close())
	return dir
}

// configured is a copy of the tiny model's folder with fields of its configuration changed.
func configured(t *testing.T, fields map[string]any) string {
	t.Helper()
	dir := initialised(t, tiny, 3)
	path := filepath.Join(dir, checkpoint.FileConfig)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	config := map[string]any{}
	require.NoError(t, json.Unmarshal(b, &config))
	for k, v := range fields {
		config[k] = v
	}
	b, err = json.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return dir
}

// TestRealFoldersRefused: what cannot be a model is refused before any step by a message that names file and tensor or
// field, and what was resident still is.
func TestRealFoldersRefused(t *testing.T) {
	e := fromPool(t, 1)
	defer e.Close()
	ctx, sound := t.Context(), initialised(t, tiny, 3)
	require.NoError(t, e.Load(ctx, policy.RolePolicy, sound, true))
	want, err := e.Forward(ctx, one)
	require.NoError(t, err)
	starts := e.Usage().Starts
	damaged := func(name string, change func([]byte) []byte) string {
		dir := initialised(t, tiny, 3)
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, change(b), 0o600))
		return dir
	}
	const weights, norm = checkpoint.FileWeights, checkpoint.NameNorm
	for _, c := range []struct {
		name, dir string
		is        error
		names     []string
	}{
		{
			"missing tensor", rewritten(t, func(x []checkpoint.Tensor) []checkpoint.Tensor { return x[:len(x)-1] }),
			checkpoint.ErrCorrupt, []string{weights, norm},
		},
		{"surplus tensor", rewritten(t, func(x []checkpoint.Tensor) []checkpoint.Tensor {
			return append(x, checkpoint.Tensor{Name: "model.extra.weight", Dims: []int{1}, Data: []float32{1}})
		}), checkpoint.ErrCorrupt, []string{weights, "model.extra.weight"}},
		{"misshapen tensor", rewritten(t, func(x []checkpoint.Tensor) []checkpoint.Tensor {
			x[len(x)-1].Dims, x[len(x)-1].Data = []int{4}, x[len(x)-1].Data[:4]
			return x
		}), checkpoint.ErrCorrupt, []string{weights, norm}},
		{
			"cut file", damaged(weights, func(b []byte) []byte { return b[:len(b)-9] }), checkpoint.ErrCorrupt,
			[]string{weights},
		},
		{
			"no safetensors", damaged(weights, func(b []byte) []byte { return []byte("PK\x03\x04 a pickle") }),
			checkpoint.ErrCorrupt, []string{weights},
		},
		{
			"architecture",
			configured(t, map[string]any{"model_type": "mamba", "architectures": []string{"MambaForCausalLM"}}),
			policy.ErrBadRequest, []string{"mamba"},
		},
		{
			"vocabulary", configured(t, map[string]any{"vocab_size": 24}), checkpoint.ErrCorrupt,
			[]string{weights, "embed_tokens"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := e.Load(ctx, policy.RolePolicy, c.dir, true)
			require.ErrorIs(t, err, c.is)
			for _, n := range c.names {
				require.ErrorContains(t, err, n)
			}
			got, err := e.Forward(ctx, one)
			require.NoError(t, err)
			require.Equal(t, want, got, "a load that fails changes nothing")
		})
	}
	for text, rows := range map[string][][]int32{
		"row 1": {{1, 2}, {1, int32(tiny.Vocab)}}, "128": {make([]int32, tiny.Positions+1)},
	} {
		req := one
		req.Sequences = rows
		_, err := e.Forward(ctx, req)
		require.ErrorIs(t, err, policy.ErrBadRequest)
		require.ErrorContains(t, err, text)
	}
	require.Equal(t, starts, e.Usage().Starts)
}

// TestRealSeveralFiles: weights in several files are the same model, and are known again.
func TestRealSeveralFiles(t *testing.T) {
	e := fromPool(t, 1)
	defer e.Close()
	ctx, whole := t.Context(), initialised(t, tiny, 3)
	require.NoError(t, e.Load(ctx, policy.RolePolicy, whole, true))
	want, err := e.Forward(ctx, one)
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(whole, checkpoint.FileWeights))
	require.NoError(t, err)
	f, err := checkpoint.DecodeSafetensors(b)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(whole, checkpoint.FileWeights)))
	index := map[string]string{}
	half := len(f.Tensors) / 2
	for name, part := range map[string][]checkpoint.Tensor{"model-00001-of-00002.safetensors": f.Tensors[:half],
		"model-00002-of-00002.safetensors": f.Tensors[half:]} {
		out, err := os.Create(filepath.Join(whole, name))
		require.NoError(t, err)
		require.NoError(t, checkpoint.EncodeSafetensors(out, part, map[string]string{"format": "pt"}))
		require.NoError(t, out.Close())
		for _, x := range part {
			index[x.Name] = name
		}
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{}, "weight_map": index})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(whole, checkpoint.FileIndex), text, 0o600))
	require.NoError(t, e.Load(ctx, policy.RolePolicy, whole, true))
	got, err := e.Forward(ctx, one)
	require.NoError(t, err)
	require.Equal(t, want, got)
	digest, err := checkpoint.Digest(whole)
	require.NoError(t, err)
	s, err := e.State(ctx, policy.RolePolicy)
	require.NoError(t, err)
	require.Equal(t, digest, s.Digest)
}
