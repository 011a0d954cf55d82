package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/internal/testing/serverstest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// named is a recipe's override with servers.
func named(t *testing.T, list ...servers.Server) string {
	t.Helper()
	var out []map[string]any
	for _, s := range list {
		one := map[string]any{"kind": s.Kind, "url": s.URL, "folder": s.Folder, "parallel": 8}
		if s.Model != "" {
			one["model"] = s.Model
		}
		if s.Tolerance > 0 {
			one["tolerance"] = s.Tolerance
		}
		out = append(out, one)
	}
	text, err := json.Marshal(out)
	require.NoError(t, err)
	return "engine.servers=" + string(text)
}

// checkpointFolder writes the checkpoint of a run's first update to a folder.
func checkpointFolder(t *testing.T, objects store.Store, run string) string {
	t.Helper()
	record, dir := commit.New(objects), t.TempDir()
	m, _, found, err := record.Lookup(context.Background(), schema.At(run, 1, schema.StageUpdate))
	require.NoError(t, err)
	require.True(t, found)
	for _, f := range m.Checkpoint.Files {
		require.NoError(t, record.FetchFile(context.Background(), m.Checkpoint.Key(f), f.Digest, f.Bytes,
			filepath.Join(dir, f.Name)))
	}
	return dir
}

// serveFolder starts our own server with a model.
func serveFolder(t *testing.T, dir string) servers.Server {
	t.Helper()
	e, err := cpu.Open(cpu.Options{Threads: 2})
	require.NoError(t, err)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
	m, err := serve.ReadModel(dir)
	require.NoError(t, err)
	s, err := serve.New(serve.Options{Engine: e.(policy.Batcher), Model: m, Name: "policy", Rows: 64, Tokens: 64 * 192,
		Queue: 1000, AllowLoad: true})
	require.NoError(t, err)
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		h.Close()
		s.Close()
		require.NoError(t, e.Close())
	})
	return servers.Server{Kind: servers.KindRopewalk, URL: h.URL, Folder: t.TempDir()}
}

// aloneAndServed trains the same weights twice: as run alone, whose engine generates itself, and as run served, whose
// rollouts come from two of our own servers. It returns the worker of the second one, and the folder of a checkpoint.
func aloneAndServed(t *testing.T, set ...string) (b *bench, dir string) {
	t.Helper()
	b = newBench(t, mem.New())
	want := trainTiny(t, b, "alone", set...)
	dir = checkpointFolder(t, b.store, "alone")
	b = newBench(t, b.store)
	got := trainTiny(t, b, "served", append(set, named(t, serveFolder(t, dir), serveFolder(t, dir)))...)
	require.Equal(t, want.Policy.Digest, got.Policy.Digest)
	require.Equal(t, want.Final, got.Final)
	return b, dir
}

// A run whose rollouts come from two of our own servers trains the same weights as one whose engine generates itself.
func TestARunThroughOurOwnServers(t *testing.T) {
	const recomputed = "loss.old_log_probs=recompute"
	b, dir := aloneAndServed(t, "steps=2", recomputed)
	said := establishedIn(t, b.store, "served")
	require.Len(t, said, 2)
	require.Equal(t, servers.LogProbsSampling, said[0].LogProbs)
	require.Equal(t, 192, said[0].Positions)
	stats := mismatchOf(t, b.store, "served", 1)
	require.Positive(t, stats[schema.StatMismatchTokens])
	require.Less(t, stats[schema.StatMismatchMax], 1e-4)
	require.Empty(t, mismatchOf(t, b.store, "alone", 1), "the engine is compared with servers alone")
	trainTiny(t, b, "cut", "steps=1", recomputed, "rollout.top_k=20", named(t, serveFolder(t, dir)))
	require.Empty(t, mismatchOf(t, b.store, "cut", 1), "distributions that were cut are not those of the trainer")
}

// Trees that servers generate, whose rows are asked for one by one, are those of the engine itself. The entropies at
// which they branch come from the servers' likeliest tokens.
func TestTreesThroughOurOwnServers(t *testing.T) {
	b, _ := aloneAndServed(t, append([]string{"loss.old_log_probs=recompute"}, branching...)...)
	rows := func(run string) []schema.BranchRow {
		return stepRows[schema.BranchRow](t, b.store, run, 1, schema.StageRollout)
	}
	alone, served := rows("alone"), rows("served")
	require.NotEmpty(t, alone)
	require.Len(t, served, len(alone))
	for i, r := range alone {
		require.InDelta(t, *r.Entropy, *served[i].Entropy, 1e-4)
		r.Entropy, served[i].Entropy = nil, nil
		r.Change, served[i].Change = nil, nil
		r.Base, served[i].Base = nil, nil
		r.Probability, served[i].Probability = nil, nil
		require.Equal(t, r, served[i])
	}
}

// establishedIn reads what a run's first manifest says about its servers.
func establishedIn(t *testing.T, objects store.Store, run string) (out []servers.Facts) {
	t.Helper()
	m, _, found, err := commit.New(objects).Lookup(context.Background(), schema.AtInit(run, schema.StagePrepare))
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, json.Unmarshal([]byte(m.Note[schema.NoteServers]), &out))
	return out
}

// mismatchOf reads the greatest statistics of a step's shards of stage logprobs.
func mismatchOf(t *testing.T, objects store.Store, run string, step int) map[string]float64 {
	t.Helper()
	record := commit.New(objects)
	head, _, found, err := record.Head(context.Background(), run, schema.At(run, step, schema.StageLogprobs).Step)
	require.NoError(t, err)
	require.True(t, found)
	out := map[string]float64{}
	for _, ref := range head.Stages[schema.StageLogprobs] {
		stage, err := record.Read(context.Background(), ref)
		require.NoError(t, err)
		for _, part := range stage.Parts {
			m, err := record.Read(context.Background(), part)
			require.NoError(t, err)
			for name, value := range m.Stats {
				if name != schema.StatRows && name != schema.StatTokens {
					out[name] = max(out[name], value)
				}
			}
		}
	}
	return out
}

// Two steps through a real llama-server, with new weights after each: every turn has the server's log-probabilities and
// no entropies, and the two engines agree.
func TestARunThroughARealLlamaServer(t *testing.T) {
	_, settings := serverstest.Router(t, serverstest.Exact...)
	settings.Tolerance = 1e-3
	b := newBench(t, mem.New())
	out := trainTiny(t, b, "llama", "steps=2", "loss.old_log_probs=recompute",
		"token_outputs.entropies=true", named(t, settings))
	require.NotEmpty(t, out.Policy.Digest)
	require.Equal(t, "policy", establishedIn(t, b.store, "llama")[0].Model)
	checkLogProbs(t, b.store, "llama", 2)
}

// Two steps through a real vLLM on the processor, with new weights after each. The two engines agree, and each
// trajectory was written by the version that the stage logprobs has asked again.
func TestARunThroughARealVLLM(t *testing.T) {
	serverstest.FindVLLM(t)
	b := newBench(t, mem.New())
	set := []string{"steps=2", "loss.old_log_probs=recompute"}
	trainTiny(t, b, "first", set...)
	dir, model := checkpointFolder(t, b.store, "first"), filepath.Join(t.TempDir(), "untied")
	c, err := checkpoint.Open(dir, false)
	require.NoError(t, err)
	defer c.Close()
	untied, err := c.Untie()
	require.NoError(t, err)
	require.NoError(t, checkpoint.WriteModel(model, untied, checkpoint.F32))
	p, settings := serverstest.VLLM(t, model, "--logprobs-mode", "processed_logprobs")
	p.Wait(t)
	settings.Tolerance = 1e-3
	out := trainTiny(t, b, "vllm", append(set, named(t, settings))...)
	require.NotEmpty(t, out.Policy.Digest)
	require.Equal(t, servers.LogProbsSampling, establishedIn(t, b.store, "vllm")[0].LogProbs)
	checkLogProbs(t, b.store, "vllm", 2)
}

// checkLogProbs checks the steps of a run through servers: a new version each step wrote the turns, the stage logprobs
// asked the same version, and servers and trainer agree.
func checkLogProbs(t *testing.T, objects store.Store, run string, steps int) {
	t.Helper()
	versions := map[string]bool{}
	for step := 1; step <= steps; step++ {
		turns := stepRows[schema.TurnRow](t, objects, run, step, schema.StageRollout)
		require.NotEmpty(t, turns)
		for _, r := range turns {
			require.Len(t, r.LogProbs, len(r.TokenIDs))
			require.Nil(t, r.Entropies)
			require.Equal(t, turns[0].PolicyVersion, r.PolicyVersion)
		}
		versions[turns[0].PolicyVersion] = true
		for _, r := range stepRows[schema.TokenOutputsRow](t, objects, run, step, schema.StageLogprobs) {
			require.Equal(t, turns[0].PolicyVersion, r.PolicyVersion)
		}
		stats := mismatchOf(t, objects, run, step)
		t.Logf("step %d: %v", step, stats)
		require.Positive(t, stats[schema.StatMismatchTokens])
		require.Less(t, stats[schema.StatMismatchMax], 1e-3)
	}
	require.Len(t, versions, steps, "a new version each step")
}

// A run parks where servers and trainer are further apart than its recipe allows.
func TestServersThatAreTooFarApart(t *testing.T) {
	_, settings := serverstest.Router(t) // half precision
	b := newBench(t, mem.New())
	recipe, err := os.ReadFile("../test/e2e/testdata/tiny.yaml")
	require.NoError(t, err)
	lendWarmStarts(t, b.store)
	_, err = b.train(t, workflows.TrainRunInput{Run: "apart", RecipeYAML: string(recipe), Set: []string{"steps=1",
		"evaluation.problems=3", "loss.old_log_probs=recompute", "engine.max_mismatch=1e-9", named(t, settings)}})
	require.ErrorContains(t, err, "parked")
	require.ErrorContains(t, err, "engine.max_mismatch: the servers' log-probabilities are")
}

// Servers that cannot take new weights evaluate a policy that equals theirs, and one that passes text evaluates too.
func TestServersThatOnlyEvaluate(t *testing.T) {
	b := newBench(t, mem.New())
	trained := trainTiny(t, b, "alone", "steps=1", "loss.old_log_probs=recompute", "rollout.top_k=20",
		"pipeline.max_staleness=1")
	fixed := serveFolder(t, checkpointFolder(t, b.store, "alone"))
	fixed.Folder = ""
	text := servers.Server{Kind: servers.KindOpenAI, URL: fixed.URL, Model: "policy"}
	for name, server := range map[string]servers.Server{"fixed": fixed, "text": text} {
		policy, recipe := b.policyOf(t, "alone", 1, named(t, server))
		got, err := b.evaluate(workflows.EvaluateInput{Run: name, RecipeYAML: recipe, RecipeFile: "r", Policy: policy})
		require.NoError(t, err, name)
		require.Equal(t, trained.Final.Trajectories, got.Summary.Trajectories, name)
		if name == "fixed" {
			require.Equal(t, trained.Final, got.Summary)
		}
	}
	other, recipe := b.policyOf(t, "alone", 0, named(t, fixed))
	_, err := b.evaluate(workflows.EvaluateInput{Run: "other", RecipeYAML: recipe, RecipeFile: "r", Policy: other})
	require.Error(t, err, "the server has other weights")
	_, err = trainTinyError(t, b, "trains", "steps=1", "loss.old_log_probs=recompute", named(t, fixed))
	require.ErrorContains(t, err, "does not offer new weights")
}

// A recipe that a server cannot serve is refused with the reason when the run is prepared.
func TestServersThatCannotTrain(t *testing.T) {
	b := newBench(t, mem.New())
	refused := func(want string, set ...string) {
		t.Helper()
		recipe, err := os.ReadFile("../test/e2e/testdata/tiny.yaml")
		require.NoError(t, err)
		_, err = b.train(t, workflows.TrainRunInput{Run: fmt.Sprintf("refused-%d", len(set)),
			RecipeYAML: string(recipe), Set: set})
		require.ErrorContains(t, err, want)
	}
	text := `engine.servers=[{kind: openai, url: "http://127.0.0.1:9", model: gpt}]`
	refused("rollout: the sampler cannot do what the recipe needs: servers: openai http://127.0.0.1:9 does not offer "+
		"exact token ids", text, "loss.old_log_probs=recompute")
	refused("loss.old_log_probs: must be recompute with engine.servers", text)
	refused("unreachable", `engine.servers=[{kind: vllm, url: "http://127.0.0.1:9"}]`, "loss.old_log_probs=recompute",
		"steps=3")
}
