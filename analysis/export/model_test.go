package export_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/store/mem"
)

const adapterConfig = `{"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": ["v_proj"], "bias": "none",` +
	` "base_model_name_or_path": null}`

// learning returns the files of a step's checkpoint: a model, the optimiser's state, and from step 3 on an adapter.
func learning(t *testing.T) func(step int) map[string][]byte {
	t.Helper()
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	made := map[int]map[string][]byte{}
	return func(step int) map[string][]byte {
		if made[step] == nil {
			made[step] = policyOf(t, tokens, step)
		}
		return made[step]
	}
}

func policyOf(t *testing.T, tokens *tokenizer.Tokenizer, step int) map[string][]byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policy")
	end, _ := tokens.ID(tokenizer.EndOfTurn)
	shape := checkpoint.Shape{Vocab: tokens.VocabSize(), Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8,
		FFN: 24, Positions: 64, RopeTheta: 5000, NormEps: 1e-6, EOS: []int32{end}, Pad: end}
	require.NoError(t, checkpoint.Init(dir, shape, uint64(step), tokens.Files()))
	files := map[string][]byte{checkpoint.FileOptimizer: []byte("moments"), checkpoint.FileValueHead: []byte("critic")}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
	}
	if step >= 3 {
		var out bytes.Buffer
		module := "base_model.model.model.layers.0.self_attn.v_proj"
		a := checkpoint.Tensor{Name: module + ".lora_A.weight", Dims: []int{2, 16}, Data: make([]float32, 32)}
		b := checkpoint.Tensor{Name: module + ".lora_B.weight", Dims: []int{8, 2}, Data: make([]float32, 16)}
		a.Data[5], a.Data[16+5], b.Data[3*2], b.Data[3*2+1] = 2, 3, 5, 7
		require.NoError(t, checkpoint.EncodeSafetensors(&out, []checkpoint.Tensor{a, b}, nil))
		files[checkpoint.FileAdapter], files[checkpoint.FileAdapterConfig] = out.Bytes(), []byte(adapterConfig)
	}
	return files
}

// policies is a run of four steps. Step 2 was deleted; the warm start solves 1 problem of 4, steps 1 and 3 solve 2,
// step 2 solves 4.
func policies(t *testing.T) (*analysis.Record, func(step int) map[string][]byte) {
	t.Helper()
	objects, of := mem.New(), learning(t)
	run := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 4, Planned: 9,
		EvaluateAt: map[int]int{1: 2, 2: 4, 3: 2}, Policy: of, Created: "2026-01-02T03:04:05Z"})
	run.Prune(2)
	return analysis.New(objects), of
}

func write(t *testing.T, record *analysis.Record, o export.ModelOptions, path string) analysis.StepCheckpoint {
	t.Helper()
	o.Run = "r"
	if o.Form == "" {
		o.Form = export.HuggingFace
	}
	got, err := export.Model(context.Background(), record, o, path)
	require.NoError(t, err)
	return got
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// The folder has the model's files as they were committed, and no training state.
func TestModelFolder(t *testing.T) {
	record, of := policies(t)
	above := t.TempDir()
	for _, c := range []struct {
		which string
		step  int
	}{{"latest", 4}, {"best", 3}, {"0", 0}, {"1", 1}} {
		dir := filepath.Join(above, c.which)
		require.Equal(t, c.step, write(t, record, export.ModelOptions{Checkpoint: c.which}, dir).Step)
		want := of(c.step)
		for _, name := range names(t, dir) {
			got, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, want[name], got, name)
		}
		require.Len(t, names(t, dir), len(want)-2, "neither optimizer.state nor value_head.state")
	}
	require.Equal(t, []string{"0", "1", "best", "latest"}, names(t, above), "nothing else is left")
}

func TestMergedModel(t *testing.T) {
	record, _ := policies(t)
	apart, merged := filepath.Join(t.TempDir(), "apart"), filepath.Join(t.TempDir(), "merged")
	write(t, record, export.ModelOptions{Checkpoint: "3"}, apart)
	require.Contains(t, names(t, apart), checkpoint.FileAdapter)
	write(t, record, export.ModelOptions{Checkpoint: "3", Merge: true}, merged)
	require.NotContains(t, names(t, merged), checkpoint.FileAdapter)
	want, err := checkpoint.Read(apart, false)
	require.NoError(t, err)
	got, err := checkpoint.Read(merged, false)
	require.NoError(t, err)
	require.False(t, got.Merged)
	require.Equal(t, want.Weights, got.Weights)

	half := filepath.Join(t.TempDir(), "half")
	write(t, record, export.ModelOptions{Checkpoint: "3", Merge: true, Dtype: checkpoint.BF16}, half)
	bytes, err := os.ReadFile(filepath.Join(half, checkpoint.FileWeights))
	require.NoError(t, err)
	layout, _, err := checkpoint.Layout(bytes)
	require.NoError(t, err)
	require.Equal(t, "BF16", layout[0].Dtype)

	plain := filepath.Join(t.TempDir(), "plain") // there is nothing to merge
	write(t, record, export.ModelOptions{Checkpoint: "1", Merge: true}, plain)
}

func TestModelFile(t *testing.T) {
	record, _ := policies(t)
	folder, file := filepath.Join(t.TempDir(), "m"), filepath.Join(t.TempDir(), "m.gguf")
	write(t, record, export.ModelOptions{Checkpoint: "3", Form: export.GGUF, Merge: true}, file)
	write(t, record, export.ModelOptions{Checkpoint: "3", Merge: true}, folder)
	c, err := checkpoint.Read(folder, false)
	require.NoError(t, err)
	vocabulary, err := pretrained.Vocabulary(c.Extra)
	require.NoError(t, err)
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	symbols, single := tokens.Symbols()
	require.Equal(t, symbols, vocabulary.Tokens)
	require.Len(t, vocabulary.Added, len(symbols)-single)
	require.EqualValues(t, single, vocabulary.Added[0])
	var want bytes.Buffer
	require.NoError(t, gguf.Write(&want, gguf.Model{Name: "r step 3", Checkpoint: c, Dtype: checkpoint.F32,
		Vocabulary: vocabulary}))
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want.Bytes(), got))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o644, info.Mode().Perm())
}

func TestModelsThatAreNotThere(t *testing.T) {
	record, _ := policies(t)
	for _, c := range []struct {
		o    export.ModelOptions
		is   error
		want string
	}{
		{export.ModelOptions{Checkpoint: "2"}, export.ErrNoCheckpoint,
			"that of step 2 was deleted (pruned), as the recipe asks; run r has those of steps 0, 1, 3, 4"},
		{export.ModelOptions{Checkpoint: "7"}, export.ErrNoCheckpoint, "that of step 7 is not finished; run r has"},
		{export.ModelOptions{Checkpoint: "last"}, export.ErrNoCheckpoint, `must be latest, best or a step, got "last"`},
		{export.ModelOptions{Checkpoint: "3", Form: export.GGUF}, export.ErrModel, "--merge adds the adapter"},
		{export.ModelOptions{Checkpoint: "3", Dtype: checkpoint.F16}, export.ErrModel, "--merge adds the adapter"},
	} {
		c.o.Run = "r"
		if c.o.Form == "" {
			c.o.Form = export.HuggingFace
		}
		above := t.TempDir()
		_, err := export.Model(context.Background(), record, c.o, filepath.Join(above, "x"))
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.want)
		require.Empty(t, names(t, above), "nothing is left")
	}
}

func TestABestModelNeedsAnEvaluation(t *testing.T) {
	objects := mem.New()
	run := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Planned: 9, Policy: learning(t),
		Created: "2026-01-02T03:04:05Z"})
	run.Prune(0) // the only one that was evaluated
	_, err := export.Model(context.Background(), analysis.New(objects),
		export.ModelOptions{Run: "r", Checkpoint: "best", Form: export.HuggingFace}, filepath.Join(t.TempDir(), "x"))
	require.ErrorIs(t, err, export.ErrNoCheckpoint)
	require.ErrorContains(t, err, "none that still exists was evaluated; run r has those of steps 1, 2")
}

// What is at the path stays until the model is complete, and is only replaced when that is asked for.
func TestModelPaths(t *testing.T) {
	record, _ := policies(t)
	above := t.TempDir()
	model, empty, other, file := filepath.Join(above, "model"), filepath.Join(above, "empty"),
		filepath.Join(above, "other"), filepath.Join(above, "file")
	require.NoError(t, os.Mkdir(empty, 0o755))
	require.NoError(t, os.Mkdir(other, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o644))
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o644))
	write(t, record, export.ModelOptions{Checkpoint: "0"}, model)
	write(t, record, export.ModelOptions{Checkpoint: "0"}, empty)
	for _, c := range []struct {
		path  string
		form  export.ModelForm
		force bool
		want  string
	}{
		{model, export.HuggingFace, false, "it exists; --force replaces it"},
		{other, export.HuggingFace, true, "a folder with files and without config.json, so not a model's"},
		{file, export.HuggingFace, true, "it is there and is no folder"},
		{file, export.GGUF, false, "it exists; --force replaces it"},
		{model, export.GGUF, true, "it is there and is a folder"},
		{filepath.Join(above, "no", "x"), export.GGUF, false, "no is not a folder"},
		{os.DevNull, export.GGUF, true, "it is there and is no file"},
	} {
		_, err := export.Model(context.Background(), record,
			export.ModelOptions{Run: "r", Checkpoint: "0", Form: c.form, Force: c.force}, c.path)
		require.ErrorIs(t, err, export.ErrTaken, c.path)
		require.ErrorContains(t, err, c.want)
	}
	_, err := export.Model(context.Background(), record,
		export.ModelOptions{Run: "r", Checkpoint: "2", Form: export.HuggingFace, Force: true}, model)
	require.Error(t, err)
	c, err := checkpoint.Read(model, false)
	require.NoError(t, err, "a failure leaves what was there")
	write(t, record, export.ModelOptions{Checkpoint: "1", Force: true}, model)
	now, err := checkpoint.Read(model, false)
	require.NoError(t, err)
	require.NotEqual(t, c.Weights[0].Data, now.Weights[0].Data)
	write(t, record, export.ModelOptions{Checkpoint: "1", Form: export.GGUF, Force: true}, file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "GGUF", string(text[:4]))
	require.Equal(t, []string{"empty", "file", "model", "other"}, names(t, above))
}

func TestATokenizerThatGGUFCannotHold(t *testing.T) {
	objects, of := mem.New(), learning(t)
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Created: "2026-01-02T03:04:05Z",
		Policy: func(step int) map[string][]byte {
			files := map[string][]byte{}
			for name, b := range of(step) {
				files[name] = b
			}
			if files["tokenizer.json"] = []byte(`{"model": {"type": "WordPiece"}}`); step == 0 {
				delete(files, "tokenizer.json")
			}
			return files
		}})
	for which, want := range map[string]string{"1": "model WordPiece is not supported",
		"0": "it has no tokenizer.json"} {
		_, err := export.Model(context.Background(), analysis.New(objects),
			export.ModelOptions{Run: "r", Checkpoint: which, Form: export.GGUF}, filepath.Join(t.TempDir(), "x"))
		require.ErrorIs(t, err, export.ErrModel)
		require.ErrorContains(t, err, want)
	}
}
