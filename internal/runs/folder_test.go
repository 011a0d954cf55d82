package runs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// modelFolder writes a small random model with the tokenizer of calc's policies.
func modelFolder(t *testing.T) string {
	t.Helper()
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, checkpoint.Init(dir, checkpoint.Shape{Vocab: tokens.VocabSize(), Hidden: 16, Layers: 1, Heads: 2,
		KVHeads: 1, HeadDim: 8, FFN: 16, Positions: 256, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}, 1, tokens.Files()))
	return dir
}

// A folder is stored once, under the digest of its model: training state and other files do not count.
func TestAFolderIsStoredOnce(t *testing.T) {
	dir, objects, code := modelFolder(t), mem.New(), strings.Repeat("c", 64)
	f, err := OpenFolder(dir)
	require.NoError(t, err)
	first, err := f.Put(t.Context(), objects, code)
	require.NoError(t, err)
	before, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.FileOptimizer), []byte("x"), 0o600))
	f, err = OpenFolder(dir)
	require.NoError(t, err)
	again, err := f.Put(t.Context(), objects, strings.Repeat("d", 64))
	require.NoError(t, err)
	require.Equal(t, first, again)
	after, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, before, after)
	m, err := commit.New(objects).Read(t.Context(), first.Manifest)
	require.NoError(t, err)
	require.Equal(t, first.Digest, m.Checkpoint.Digest)
	require.Equal(t, schema.StageWarmStart, m.Stage)
	for _, file := range m.Checkpoint.Files {
		require.True(t, checkpoint.IsModel(file.Name), file.Name)
	}
}

func TestFoldersWithoutAModel(t *testing.T) {
	damage := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	remove := func(name string) func(dir string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	for text, change := range map[string]func(dir string) error{
		"it has no config.json":       remove("config.json"),
		"it has no tokenizer.json":    remove("tokenizer.json"),
		"it has no model.safetensors": remove("model.safetensors"),
		"parse config.json":           damage("config.json", "{"),
		"corrupt checkpoint":          damage("model.safetensors", "x"),
		"its tokenizer.json is not":   damage("tokenizer.json", "{}"),
		"there is no such folder":     os.RemoveAll,
	} {
		dir := modelFolder(t)
		require.NoError(t, change(dir))
		_, err := OpenFolder(dir)
		var bad badinput.Error
		require.ErrorAs(t, err, &bad, text)
		require.ErrorContains(t, err, text)
	}
	_, err := OpenFolder(filepath.Join(modelFolder(t), "config.json"))
	require.ErrorContains(t, err, "is a file")
}

// The same policy under the same recipe has the same name; any change gives another.
func TestAnEvaluationHasTheNameOfItsPolicyAndRecipe(t *testing.T) {
	f, err := OpenFolder(modelFolder(t))
	require.NoError(t, err)
	policy, err := f.Put(t.Context(), mem.New(), strings.Repeat("c", 64))
	require.NoError(t, err)
	name := func(environment string, set ...string) string {
		e, err := f.Evaluation(nil)
		require.NoError(t, err)
		e.Policy, e.Environment, e.Set = policy, environment, set
		ask, resolved, err := e.Start(time.Unix(0, 0))
		require.NoError(t, err)
		require.Equal(t, environment, resolved.Recipe.Environment.Name)
		return ask.Request.Run
	}
	require.Equal(t, name("calc"), name("calc"))
	require.NotEqual(t, name("calc"), name("calc", "evaluation.samples=8"))
	require.NotEqual(t, name("calc"), name("sokoban"))
	e, err := f.Evaluation(nil)
	require.NoError(t, err)
	e.Environment = "nosuch"
	_, _, err = e.Start(time.Unix(0, 0))
	require.ErrorContains(t, err, `--environment: no environment "nosuch" in which a policy can be run; there are calc`)
}

// A model whose chat template writes earlier turns differently is measured with a whole prompt for each turn.
func TestModelsThatRewriteTheirTurns(t *testing.T) {
	dir := modelFolder(t)
	path := filepath.Join(dir, "tokenizer_config.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	config := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &config))
	config["chat_template"] = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}` +
		`{% if m.reasoning_content and loop.last %}{{ '<think>' + m.reasoning_content + '</think>' }}{% endif %}` +
		`{{ m.content }}` +
		`{% for c in m.tool_calls or [] %}{{ '<tool_call>' + c.function | tojson + '</tool_call>' }}{% endfor %}` +
		`{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
	text, err = json.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	m, err := OpenModel(t.Context(), dir, "")
	require.NoError(t, err)
	e, err := m.Evaluation(nil)
	require.NoError(t, err)
	e.Environment, e.Set = "sums", []string{"rollout.tools=[python]", "rollout.max_turns=3"}
	_, resolved, err := e.Start(time.Now())
	require.NoError(t, err)
	require.Equal(t, "turns", resolved.Recipe.Layout)
}

// A model of another tokenizer is one that policy.checkpoint takes: by its path, and known by its bytes.
func TestModelsOfOthers(t *testing.T) {
	dir := modelFolder(t)
	m, err := OpenModel(t.Context(), dir, "")
	require.NoError(t, err)
	digest, err := checkpoint.Digest(dir)
	require.NoError(t, err)
	e, err := m.Evaluation(nil)
	require.NoError(t, err)
	e.Environment, e.Set = "sums", []string{"evaluation.problems=6"}
	ask, resolved, err := e.Start(time.Now())
	require.NoError(t, err)
	require.Equal(t, digest, ask.Request.File)
	require.Equal(t, dir, resolved.Recipe.Policy.Checkpoint)
	require.Equal(t, "chat", resolved.Recipe.Rollout.Protocol)
	require.True(t, ask.Input.(workflows.EvaluateInput).Checkpoint)
	for address, says := range map[string]string{"/no/model.gguf": "/no/model.gguf: stat /no/model.gguf: no such file",
		"gs://a/b": "gs://a/b: want a path, hf://, s3://, URL#NAME of", "s3://a": "s3://a: "} {
		_, err := OpenModel(t.Context(), address, "")
		var bad badinput.Error
		require.ErrorAs(t, err, &bad)
		require.ErrorContains(t, err, says)
	}
}
