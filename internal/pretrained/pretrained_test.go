package pretrained_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
)

// Models that transformers saves, in bfloat16 and in several files, are taken as they are, and the CPU engine trains
// them.
func TestModelsOfTransformers(t *testing.T) {
	python := pythontest.Need(t, "TORCH", "transformers", "torch")
	folder := t.TempDir()
	var names []string
	pythontest.Ask(t, python, "testdata/model.py", map[string]string{"folder": folder}, &names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			from, to := filepath.Join(folder, name), filepath.Join(folder, name+"-taken")
			shards, err := filepath.Glob(filepath.Join(from, "model-*-of-*.safetensors"))
			require.NoError(t, err)
			require.Greater(t, len(shards), 1)
			require.NoError(t, pretrained.Take(from, to))
			one, err := checkpoint.Digest(from)
			require.NoError(t, err)
			other, err := checkpoint.Digest(to)
			require.NoError(t, err)
			require.Equal(t, one, other)
			files, err := pretrained.Files(to)
			require.NoError(t, err)
			m, err := pretrained.Read(files)
			require.NoError(t, err)
			require.Equal(t, []string{"<|im_end|>"}, m.Ends)
			require.Equal(t, "<|im_end|>", m.Special["eos_token"])
			require.Equal(t, m.Shape.Vocab, m.Tokens.VocabSize(), "the embedding has more ids")
			require.Contains(t, m.Template, "<|im_start|>")
			require.Equal(t, "The answer", m.Tokens.Decode(m.Tokens.Encode("The answer")))

			e, err := cpu.Open(cpu.Options{Threads: 1})
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			require.NoError(t, e.Load(t.Context(), policy.RolePolicy, to, true))
		})
	}
}
