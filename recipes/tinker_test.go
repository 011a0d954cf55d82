package recipes

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/tinker"
)

// remoteSet makes the recipe one that a Tinker server can train.
var remoteSet = []string{
	"engine={kind: tinker, deterministic: false, lora: {rank: 8}, tinker: {url: 'https://h', token: '${env:KEY}', " +
		"base_model: Qwen/Qwen3-0.6B}}",
	"policy={checkpoint: /models/qwen3}", "warm_start.steps=0", "warm_start.optimizer.warmup_steps=0",
	"optimizer.clip_norm=0",
}

// The server of a recipe survives its canonical form, and recipes without one keep theirs.
func TestTinkerServerOfARecipe(t *testing.T) {
	require.NotContains(t, string(resolved(t, "quickstart").JSON), "tinker")
	with := resolved(t, "quickstart", remoteSet...)
	again, err := ParseCommitted("f", with.JSON, nil)
	require.NoError(t, err)
	require.Equal(t, &tinker.Server{URL: "https://h", Token: "${env:KEY}", BaseModel: "Qwen/Qwen3-0.6B", Parallel: 16,
		Seconds: 600, Attempts: 5, Tolerance: 0.02, Verify: true}, again.Engine.Tinker)
	require.Equal(t, 32.0, again.Engine.LoRA.Alpha)
}

// What a Tinker server cannot do is refused by name, with the reason.
func TestRecipesThatNoTinkerServerTrains(t *testing.T) {
	for set, message := range map[string]string{
		"engine.tinker=null":                   ": with engine.kind tinker: is required: it names the server",
		"engine.tinker.url=h":                  "url: must be an address that begins with http://",
		"engine.tinker.token=sk-123456":        "token: must be a reference to a secret",
		"engine.lora=null":                     "a server trains an adapter, never the whole model",
		"engine.lora.alpha=16":                 ": with engine.kind tinker: must be 32",
		"engine.lora.targets=[q_proj, v_proj]": "the API chooses no single one",
		"engine.deterministic=true":            ": with engine.kind tinker: must be false",
		"policy={layers: 2}":                   ": with engine.kind tinker: is required",
		"warm_start.steps=3":                   "a warm start trains the whole model",
		"rollout.temperature=0.7":              ": with engine.kind tinker: must be 1",
		"evaluation.temperature=0.7":           ": with engine.kind tinker: must be 1",
		"evaluation.top_p=0.9":                 ": with engine.kind tinker",
		"loss.entropy=0.01":                    "no entropies of whole distributions",
		"token_outputs={entropies: true}":      "token_outputs.entropies: with engine.kind tinker: a server returns",
		"optimizer.weight_decay=0.1":           ": with engine.kind tinker: must be 0",
		"engine.devices=2":                     "cannot be combined with engine.kind tinker",
		"engine.dtype=bfloat16":                "cannot be combined with engine.kind tinker",
		"advantage={name: gae}":                "gae reads a critic's values",
		"schedule={stages: [{from_step: 2, reset_optimizer: true}]}": "a server loads weights together",
	} {
		_, err := Resolve("quickstart", "", append(slices.Clone(remoteSet), set), nil, nil)
		require.ErrorContains(t, err, message, set)
		require.NotContains(t, err.Error(), "sk-123456", "what may be a secret is not repeated")
	}
	_, err := Resolve("quickstart", "", append(slices.Clone(remoteSet), "loss.kl={coefficient: 0.01}"), nil, nil)
	require.NoError(t, err, "a divergence of the given tokens needs no whole distribution")
}
