package enginepool

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/testing/tinkertest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tinker"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// trainedAt is a recipe that trains the model in a folder at a server.
func trainedAt(t *testing.T, s *tinkertest.Server, dir string) *recipes.Recipe {
	t.Helper()
	config, err := os.ReadFile(filepath.Join(dir, checkpoint.FileConfig))
	require.NoError(t, err)
	return &recipes.Recipe{Steps: 3, Rollout: recipes.Rollout{Temperature: 1},
		Evaluation: recipes.Evaluation{Temperature: 1},
		Policy:     recipes.Policy{Checkpoint: dir, Pinned: &recipes.Pinned{Config: string(config)}},
		Engine: recipes.Engine{Kind: "tinker",
			Tinker: &tinker.Server{URL: s.URL, BaseModel: s.Name, Verify: true},
			LoRA: &recipes.LoRA{Rank: 2, Alpha: tinker.Alpha,
				Targets: []string{"q_proj", "k_proj", "v_proj", "o_proj"}}}}
}

// Engines at a server take no device: they open next to an engine that has all of them, one for each run, and close
// when the pool does. What the server is, is noted; what it cannot do is refused.
func TestEnginesAtAServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "base")
	require.NoError(t, checkpoint.Init(dir, checkpoint.Shape{Vocab: 40, Hidden: 32, Layers: 1, Heads: 2, KVHeads: 1,
		HeadDim: 16, FFN: 32, Positions: 64, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}, 1,
		map[string][]byte{"tokenizer.json": []byte("{}")}))
	s := tinkertest.New(t, dir, tinkertest.SkyRL)
	maker := &torchMaker{devices: 1, offer: Offer{Device: "a device", Capabilities: able}}
	p := New(Options{Torch: maker, Scratch: t.TempDir(),
		Score: servers.ScoreWith(func() (policy.Engine, error) { return cpu.Open(cpu.Options{Threads: 1}) })})
	r := trainedAt(t, s, dir)
	c, err := p.Choose(t.Context(), r)
	require.NoError(t, err)
	m := schema.Manifest{Note: map[string]string{}}
	c.Note(&m)
	require.Equal(t, "tinker", m.Note[schema.NoteEngine])
	require.Contains(t, m.Note[schema.NoteTinker],
		`"loss":"importance_sampling","per_token":true,"per_sequence":"step"`)
	require.Zero(t, s.Models(), "what asked has left")

	clipped := *r
	clipped.Optimizer.ClipNorm = 1
	_, err = p.Choose(t.Context(), &clipped)
	require.ErrorContains(t, err, "optimizer.clip_norm: must be 0: server tinker "+s.URL+" does not clip gradients")
	var bad badinput.Error
	require.ErrorAs(t, err, &bad)
	hot := *r
	hot.Rollout.Temperature = 0.5
	_, err = p.Choose(t.Context(), &hot)
	require.ErrorContains(t, err, "does not offer temperature")

	_, device, err := p.Trainer(t.Context(), "local", &recipes.Recipe{Engine: recipes.Engine{Kind: "torch",
		Devices: 1}}, false)
	require.NoError(t, err)
	trainer, release, err := p.Trainer(t.Context(), "a", r, false)
	require.NoError(t, err)
	sampler, also, err := p.Sampler(t.Context(), "a", r, false)
	require.NoError(t, err)
	require.Same(t, trainer.Resident, sampler.Resident, "one engine trains and samples")
	require.NoError(t, trainer.LoadFolder(t.Context(), policy.RolePolicy, dir, true))
	require.Equal(t, 1, s.Models())
	other, more, err := p.Trainer(t.Context(), "b", r, false)
	require.NoError(t, err)
	require.NotSame(t, trainer.Resident, other.Resident)
	for _, give := range []Release{device, release, also, more} {
		give(false)
	}
	require.NoError(t, p.Close())
	require.Zero(t, s.Models())
}
