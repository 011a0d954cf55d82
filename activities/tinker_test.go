package activities_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/tinkertest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tinker"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// atServer is what a recipe sets to train the model in a folder at a Tinker server.
func atServer(t *testing.T, url, name, dir string, more ...string) []string {
	t.Helper()
	engine, err := json.Marshal(map[string]any{"kind": "tinker", "deterministic": false,
		"lora":   map[string]any{"rank": 4},
		"tinker": map[string]any{"url": url, "base_model": name, "tolerance": 1e-3}})
	require.NoError(t, err)
	return append([]string{"engine=" + string(engine), `policy={"checkpoint": "` + dir + `"}`, "warm_start.steps=0",
		"warm_start.optimizer.warmup_steps=0", "optimizer.clip_norm=0"}, more...)
}

// aBase is the policy of a short run, as the base of adapters.
func aBase(t *testing.T) (*bench, string) {
	t.Helper()
	b := newBench(t, mem.New())
	trainTiny(t, b, "base", "steps=1")
	return b, checkpointFolder(t, b.store, "base")
}

// A run trains an adapter at a server: each step's checkpoint holds it, the base is stored once, updates have no
// entropies, and the manifest says how the server turns numbers into gradients.
func TestARunAtATinkerServer(t *testing.T) {
	b, dir := aBase(t)
	for name, behaves := range map[string]tinkertest.Behaviour{"skyrl": tinkertest.SkyRL,
		"elsewhere": {NoDownload: true, NoNorm: true}} {
		t.Run(name, func(t *testing.T) {
			s := tinkertest.New(t, dir, behaves)
			with := newBench(t, b.store)
			out := trainTiny(t, with, name, atServer(t, s.URL, s.Name, dir, "steps=2",
				"loss.kl={coefficient: 0.01}")...)
			require.NotEmpty(t, out.Policy.Digest)
			for step := 1; step <= 2; step++ {
				for _, u := range stepRows[schema.UpdateRow](t, b.store, name, step, schema.StageUpdate) {
					require.Nil(t, u.Entropy)
					require.Equal(t, behaves.NoNorm, u.GradNorm == nil)
				}
				c := checkpointOf(t, b.store, name, step)
				require.Equal(t, !behaves.NoDownload, has(c, checkpoint.FileAdapter))
				require.True(t, has(c, checkpoint.FileReference))
				require.Equal(t, behaves.NoDownload, c.Weights == "")
				for _, f := range c.Files {
					require.Equal(t, f.Name == checkpoint.FileWeights, f.At != "", f.Name)
				}
			}
			facts := tinkerIn(t, b.store, name)
			require.Equal(t, !behaves.NoDownload, facts.Downloads)
			require.Equal(t, behaves.ByWeights, facts.Convention.PerToken)
		})
	}
}

func has(c *schema.Checkpoint, name string) bool {
	for _, f := range c.Files {
		if f.Name == name {
			return true
		}
	}
	return false
}

func checkpointOf(t *testing.T, objects store.Store, run string, step int) *schema.Checkpoint {
	t.Helper()
	m, _, found, err := commit.New(objects).Lookup(context.Background(), schema.At(run, step, schema.StageUpdate))
	require.NoError(t, err)
	require.True(t, found)
	return m.Checkpoint
}

// tinkerIn reads what a run's first manifest says about its server.
func tinkerIn(t *testing.T, objects store.Store, run string) (out tinker.Facts) {
	t.Helper()
	m, _, found, err := commit.New(objects).Lookup(context.Background(), schema.AtInit(run, schema.StagePrepare))
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, json.Unmarshal([]byte(m.Note[schema.NoteTinker]), &out))
	return out
}

// A recipe that a server cannot train is refused when the run is prepared.
func TestTinkerServersThatCannotTrain(t *testing.T) {
	b, dir := aBase(t)
	s := tinkertest.New(t, dir, tinkertest.SkyRL)
	refused := func(want string, set ...string) {
		t.Helper()
		_, err := trainTinyError(t, newBench(t, b.store), "refused", set...)
		require.ErrorContains(t, err, want)
	}
	refused("does not clip gradients", atServer(t, s.URL, s.Name, dir, "optimizer.clip_norm=1")...)
	refused("it has no base model other, only [base/model]", atServer(t, s.URL, "other", dir)...)
	refused("unreachable", atServer(t, "http://127.0.0.1:9", s.Name, dir)...)
	other := filepath.Join(t.TempDir(), "other")
	c, err := checkpoint.Read(dir, false)
	require.NoError(t, err)
	for i := range c.Weights[0].Data {
		c.Weights[0].Data[i] *= 1.5
	}
	_, err = checkpoint.Write(other, c)
	require.NoError(t, err)
	refused("nats per token from those of our own forward pass", atServer(t, s.URL, s.Name, other)...)
}

// Three steps at SkyRL's server: the policy is trained there, every step's checkpoint holds another adapter, and the
// server's two ways of computing log-probabilities agree.
func TestARunAtARealTinkerServer(t *testing.T) {
	tinkertest.Python(t)
	b, dir := aBase(t)
	p := tinkertest.Start(t, dir)
	with := newBench(t, b.store)
	out := trainTiny(t, with, "skyrl", atServer(t, p.URL, dir, dir, "steps=3", "rollout.prompts=4",
		"rollout.samples_per_prompt=4", "rollout.max_turns=2", "resample={}", "optimizer.lr=0.003",
		"loss.old_log_probs=recompute")...)
	require.NotEmpty(t, out.Policy.Digest)
	t.Log(tinkerIn(t, b.store, "skyrl"))
	weights, moved := map[string]bool{}, false
	for step := 1; step <= 3; step++ {
		c := checkpointOf(t, b.store, "skyrl", step)
		require.True(t, has(c, checkpoint.FileAdapter))
		weights[c.Weights] = true
		for _, u := range stepRows[schema.UpdateRow](t, b.store, "skyrl", step, schema.StageUpdate) {
			moved = moved || *u.GradNorm > 0 // a batch of equal rewards has no gradient
			t.Logf("step %d: loss %.4f, gradient norm %.4f, greatest ratio %.4f", step, u.Loss, *u.GradNorm, u.RatioMax)
		}
		turns := stepRows[schema.TurnRow](t, b.store, "skyrl", step, schema.StageRollout)
		require.NotEmpty(t, turns)
		for _, r := range turns {
			require.Len(t, r.LogProbs, len(r.TokenIDs))
			require.Nil(t, r.Entropies)
		}
	}
	require.True(t, moved)
	require.Len(t, weights, 3, "also AdamW's moments move")
}
