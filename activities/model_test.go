package activities_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/warmstart"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/hubtest"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// modelFolder makes a tiny Llama with the tokenizer of quickstart's protocol.
func modelFolder(t *testing.T, shape checkpoint.Shape) string {
	t.Helper()
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	if shape.Vocab == 0 {
		shape.Vocab = tokens.VocabSize()
	}
	folder := filepath.Join(t.TempDir(), "model")
	require.NoError(t, checkpoint.Init(folder, shape, 5, tokens.Files()))
	return folder
}

// tiny is the shape of the tests' models.
var tiny = checkpoint.Shape{Architecture: checkpoint.Llama, Hidden: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 16,
	FFN: 64, Positions: 256, RopeTheta: 1e4, NormEps: 1e-5, Pad: -1}

// from sets what a recipe needs to start from a model, and makes it small.
func from(address string) []string {
	out := []string{"policy={checkpoint: '" + address + "'}", "warm_start.steps=0",
		"warm_start.optimizer.warmup_steps=0"}
	for _, s := range small {
		if !strings.HasPrefix(s, "policy.") && !strings.HasPrefix(s, "warm_start.") {
			out = append(out, s)
		}
	}
	return append(out, "steps=1")
}

// firstPolicy prepares a run and makes its first policy.
func firstPolicy(t *testing.T, deps *stage.Worker, run, address string, more ...string) (schema.Manifest, error) {
	t.Helper()
	prepared, err := prepare.PrepareRun{Worker: deps}.Execute(t.Context(), &stage.Env{}, api.PrepareInput{
		Run: run, Kind: "train",
		Recipe: "quickstart", Overrides: append(from(address), more...)})
	if err != nil {
		return schema.Manifest{}, err
	}
	made, err := warmstart.WarmStart{Worker: deps}.Execute(t.Context(), &stage.Env{}, api.Scope{
		Run: run, Step: api.InitStep,
		Config: prepared.Manifest})
	if err != nil {
		return schema.Manifest{}, err
	}
	return deps.Record.Read(t.Context(), made.Manifest)
}

// A run starts from a local folder, and others from the same model elsewhere: the first policy is the model in each.
func TestRunsStartFromModels(t *testing.T) {
	folder := modelFolder(t, tiny)
	digest, err := checkpoint.Digest(folder)
	require.NoError(t, err)
	objects, data := mem.New(), mem.New()
	files := map[string][]byte{"README.md": []byte("text")}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		files[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name()))
		require.NoError(t, err)
		require.NoError(t, data.Put(t.Context(), "models/m/"+e.Name(), files[e.Name()]))
	}
	server := hubtest.New(t, map[string]hubtest.Repository{"o/m": {Files: files, Token: "hf_secretsecret"}})
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{Models: filepath.Dir(folder),
		Bucket: func(name string) (store.Store, error) {
			require.Equal(t, "data", name)
			return data, nil
		}})

	b := &bench{store: objects, record: commit.New(objects), deps: deps}
	_, err = b.train(t, workflows.TrainRunInput{Run: "local", Recipe: "quickstart", Set: from(folder)})
	require.NoError(t, err)
	warm, _, found, err := deps.Record.Lookup(t.Context(), schema.AtInit("local", schema.StageWarmStart))
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, digest, warm.Checkpoint.Digest)
	require.True(t, schema.Lasting(warm.Checkpoint.Key(warm.Checkpoint.Files[0])), "pruning leaves it")

	t.Setenv("MODELS_TOKEN", "hf_secretsecret")
	const token = "policy.token='${env:MODELS_TOKEN}'"
	for i, c := range []struct {
		address string
		more    []string
	}{{"model", nil}, {"s3://data/models/m", nil}, {"hf://o/m", []string{token}}, {"run:local@0", nil}} {
		m, err := firstPolicy(t, deps, "again"+string(rune('a'+i)), c.address, c.more...)
		require.NoError(t, err, c.address)
		require.Equal(t, digest, m.Checkpoint.Digest, c.address)
	}
	m, err := firstPolicy(t, deps, "onwards", "run:local")
	require.NoError(t, err)
	require.Len(t, m.Inputs, 2)

	// the store has the model now, so the hub is not asked for it again
	before := server.Files.Load()
	_, err = firstPolicy(t, deps, "second", "hf://o/m@main", token)
	require.NoError(t, err)
	require.Equal(t, before, server.Files.Load())
	server.Close()
	for i, address := range []string{"hf://o/m@" + hubtest.Commit, "hf://o/m", "hf://o/m@main"} {
		m, err := firstPolicy(t, deps, "offline"+string(rune('a'+i)), address)
		require.NoError(t, err)
		require.Equal(t, digest, m.Checkpoint.Digest)
	}
	listed, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	for _, o := range listed {
		data, err := objects.Get(t.Context(), o.Key)
		require.NoError(t, err)
		require.NotContains(t, string(data), "hf_secretsecret", o.Key)
	}
}

// What cannot start a run is refused by name before anything starts.
func TestModelsThatAreRefused(t *testing.T) {
	folder := modelFolder(t, tiny)
	server := hubtest.New(t, map[string]hubtest.Repository{
		"o/gated": {Token: "hf_secretsecret", Files: map[string][]byte{"config.json": []byte("{}")}},
		"o/other": {Files: map[string][]byte{"config.json": []byte(`{"model_type": "mamba"}`)}},
	})
	deps := pipelinetest.Deps(t, mem.New(), pipelinetest.Wrap{Models: filepath.Dir(folder)})
	edit := func(name, old, new string) string {
		other := t.TempDir()
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(folder, e.Name()))
			require.NoError(t, err)
			if e.Name() == name {
				require.Contains(t, string(data), old)
				data = []byte(strings.Replace(string(data), old, new, 1))
			}
			require.NoError(t, os.WriteFile(filepath.Join(other, e.Name()), data, 0o600))
		}
		return other
	}
	lacking := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(lacking, "pytorch_model.bin"), []byte("x"), 0o600))
	for address, says := range map[string]string{
		"/no/such/folder":   "no such file or directory",
		"../model":          "does not lead out of the folder of models",
		"absent":            "no such file or directory",
		"gs://a/b":          "want an absolute path, s3://, hf://, run:RUN or the name of a model",
		"s3://other/m":      "this worker opens no other buckets",
		"run:nothing":       "commits no checkpoint of the policy after step 0",
		"hf://o/gated":      "403 Forbidden (GatedRepo): Access to model gated is restricted",
		"hf://o/none":       "Repository not found",
		"hf://o/other":      `model_type is "mamba"`,
		"hf://o/gated@v1 x": `"v1 x" is no revision`,
		lacking:             "has no *.safetensors; it has pytorch_model.bin",
		edit("config.json", `"hidden_size": 32`, `"hidden_size": 48`):       `config.json wants`,
		edit("config.json", `"hidden_act": "silu"`, `"hidden_act": "gelu"`): `hidden_act is "gelu"`,
		edit("tokenizer.json", `"type": "BPE"`, `"type": "WordPiece"`):      "model WordPiece is not supported",
		edit("config.json", `"max_position_embeddings": 256`, `"max_position_embeddings": 64`): "rollout." +
			"max_tokens: must be ≤ 64",
	} {
		_, err := firstPolicy(t, deps, "refused", address)
		require.ErrorContains(t, err, says, address)
	}
	server.Close()
	_, err := firstPolicy(t, deps, "refused", "hf://o/new")
	require.ErrorContains(t, err, "the hub cannot be reached")
	require.ErrorContains(t, err, "it is not in the store either")
}
