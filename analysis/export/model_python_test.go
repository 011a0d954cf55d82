package export_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rollout"
)

// transformers loads an exported folder: its tokenizer and its model give what our own give. peft merges an adapter
// into the weights that --merge writes.
func TestTransformersLoadsTheFolder(t *testing.T) {
	exe := pythontest.Need(t, "TORCH", "torch", "transformers", "peft")
	record, _ := policies(t)
	folders := map[string]any{}
	for name, o := range map[string]export.ModelOptions{
		"plain": {Checkpoint: "1"}, "apart": {Checkpoint: "3"}, "merged": {Checkpoint: "3", Merge: true},
	} {
		dir := filepath.Join(t.TempDir(), name)
		write(t, record, o, dir)
		folders[name] = dir
	}
	texts := []string{"What is 12 + 30?", "<reason>né</reason><|im_end|>"}
	folders["texts"] = texts
	var got struct {
		IDs           [][]int32 `json:"ids"`
		Plain, Merged [][]float64
		Difference    float64
	}
	pythontest.Ask(t, exe, filepath.Join("testdata", "load.py"), folders, &got)

	require.Less(t, got.Difference, 1e-6)
	require.NotEqual(t, got.Plain, got.Merged)
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	for i, text := range texts {
		require.Equal(t, tokens.Encode(text), got.IDs[i])
	}
	for name, want := range map[string][][]float64{"plain": got.Plain, "merged": got.Merged} {
		engine, err := cpu.Open(cpu.Options{Threads: 1})
		require.NoError(t, err)
		require.NoError(t, engine.Load(t.Context(), policy.RolePolicy, folders[name].(string), false))
		ours, err := engine.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: got.IDs,
			Temperature: 1, Outputs: policy.OutLogProb})
		require.NoError(t, err)
		for i, row := range want {
			for k, v := range row {
				require.InDelta(t, v, ours.LogProbs[i][k+1], 1e-4, "%s, text %d, token %d", name, i, k+1)
			}
		}
		require.NoError(t, engine.Close())
	}
}
