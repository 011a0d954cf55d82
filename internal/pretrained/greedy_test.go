package pretrained_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/rl/optimizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// The model that recipes/smollm2.yaml starts from. `make models` fetches it.
const smollm2 = "smollm2-135m-instruct.gguf"

// publishedModel returns the path of a published model in the folder of models. Without the model the test is skipped,
// or fails if ROPEWALK_REQUIRE_MODELS is set.
func publishedModel(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(cmp.Or(os.Getenv("ROPEWALK_MODELS"), filepath.Join("..", "..", ".tools", "models")), name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("ROPEWALK_REQUIRE_MODELS") != "" {
			t.Fatalf("%v: make models fetches it", err)
		}
		t.Skip(err)
	}
	return path
}

// A trained policy answers greedily with the same text here, in transformers and, written as GGUF with its tokenizer
// and template, in llama.cpp's server.
func TestGreedyTextIsTheSameElsewhere(t *testing.T) {
	from := publishedModel(t, smollm2)
	exe := pythontest.Need(t, "LLAMA", "torch", "transformers", "xllamacpp")
	taken, folder := filepath.Join(t.TempDir(), "taken"), filepath.Join(t.TempDir(), "model")
	require.NoError(t, pretrained.Take(from, taken))
	files, err := pretrained.Files(taken)
	require.NoError(t, err)
	m, err := pretrained.Read(files)
	require.NoError(t, err)
	e, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, taken, false))
	trainOnce(t, e, m)
	_, err = e.Save(t.Context(), policy.RolePolicy, folder)
	require.NoError(t, err)
	require.NoError(t, checkpoint.DropOptimizer(folder))

	const system, tokens = "Answer with the number only.", 24
	questions := []string{"What is 17 + 25?", "Name the capital of France.", "Write one line about the sea.",
		"Repeat: naïve café 漢字 123"}
	file := filepath.Join(t.TempDir(), "model.gguf")
	writeGGUF(t, folder, file)
	var got struct {
		Prompts             [][]int32
		Transformers, Llama []string
	}
	pythontest.Ask(t, exe, filepath.Join("testdata", "greedy.py"), map[string]any{"folder": folder, "file": file,
		"system": system, "questions": questions, "tokens": tokens}, &got)

	chat, err := protocol.Chat{System: system}.With(protocol.ChatModel{Template: m.Template, Special: m.Special,
		Added: m.Tokens.Added(), Ends: m.Ends})
	require.NoError(t, err)
	req := policy.GenerateRequest{Role: policy.RolePolicy}
	for _, end := range m.Ends {
		id, ok := m.Tokens.ID(end)
		require.True(t, ok)
		req.Stop = append(req.Stop, id)
	}
	for i, q := range questions {
		text, err := chat.Render(protocol.View{Task: q, Tools: []protocol.Tool{}})
		require.NoError(t, err)
		req.Prefixes = append(req.Prefixes, m.Tokens.Encode(text))
		require.Equal(t, got.Prompts[i], req.Prefixes[i], "the prompt of %q", q)
		req.Streams, req.MaxTokens = append(req.Streams, uint64(i)), append(req.MaxTokens, tokens)
	}
	ours, err := e.Generate(t.Context(), req)
	require.NoError(t, err)
	for i, q := range questions {
		text := m.Tokens.Decode(ours.Tokens[i])
		for _, end := range m.Ends {
			text = strings.TrimSuffix(text, end)
		}
		require.NotEmpty(t, text)
		require.Equal(t, text, got.Transformers[i], "transformers on %q", q)
		require.Equal(t, text, got.Llama[i], "llama.cpp on %q", q)
	}
}

// trainOnce takes one optimiser step on random text, so that the weights are not the published ones.
func trainOnce(t *testing.T, e policy.Engine, m pretrained.Model) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	row, weights := make([]int32, 24), make([]float32, 24)
	for i := range row {
		row[i], weights[i] = int32(rng.IntN(m.Shape.Vocab)), -1.0/24
	}
	out, err := e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: [][]int32{row},
		Temperature: 1, Outputs: policy.OutLogProb, Keep: true})
	require.NoError(t, err)
	require.NoError(t, e.Backward(t.Context(), policy.RolePolicy, out.Kept,
		policy.Cotangents{LogProbs: [][]float32{weights}}))
	stats, err := e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{LR: 1e-5,
		Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}, ClipNorm: 1})
	require.NoError(t, err)
	require.Positive(t, stats.GradNorm)
}

// writeGGUF writes a model's folder as one file.
func writeGGUF(t *testing.T, folder, file string) {
	t.Helper()
	c, err := checkpoint.Open(folder, false)
	require.NoError(t, err)
	v, err := pretrained.Vocabulary(c.Extra)
	require.NoError(t, err)
	require.Equal(t, "smollm", v.Split)
	require.NotEmpty(t, v.ChatTemplate)
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, gguf.Write(f, gguf.Model{Name: "trained", Checkpoint: c, Vocabulary: v, Dtype: checkpoint.F32}))
	require.NoError(t, f.Close())
	require.NoError(t, c.Close())
}
