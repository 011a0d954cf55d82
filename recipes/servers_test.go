package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/servers"
)

const (
	serverSet = "engine.servers=[{kind: vllm, url: 'http://127.0.0.1:8000', folder: /weights, token: '${env:TOKEN}'}]"
	recompute = "loss.old_log_probs=recompute"
)

// A recipe's inference servers survive its canonical form, and recipes without them keep theirs.
func TestServersOfARecipe(t *testing.T) {
	require.NotContains(t, string(resolved(t, "quickstart").JSON), "servers")
	with := resolved(t, "quickstart", serverSet, recompute)
	again, err := ParseCommitted("f", with.JSON, nil)
	require.NoError(t, err)
	require.Equal(t, []servers.Server{{Kind: "vllm", URL: "http://127.0.0.1:8000", Token: "${env:TOKEN}",
		Folder: "/weights", Dtype: "float32", Parallel: 8, Seconds: 600, LoadSeconds: 600, Attempts: 5,
		Tolerance: 0.02}}, again.Engine.Servers)
	require.True(t, with.Recipe.Needs().Logprobs, "the trainer computes the ratio's denominators")
}

func TestServersThatARecipeCannotHave(t *testing.T) {
	for set, message := range map[string]string{
		"loss.old_log_probs=rollout":                                       "must be recompute with engine.servers",
		"engine.servers=[{kind: vllm}]":                                    "url: is required",
		"engine.servers=[{url: 'http://h'}]":                               "kind: is required",
		"engine.servers=[{kind: tgi, url: 'http://h'}]":                    "must be one of ropewalk, llama, vllm, ",
		"engine.servers=[{kind: vllm, url: h}]":                            "url: must be an address that begins with",
		"engine.servers=[{kind: vllm, url: 'http://h', folder: w}]":        "folder: must be an absolute path, got w",
		"engine.servers=[{kind: vllm, url: 'http://h', parallel: 0}]":      "must be ≥ 1",
		"engine.servers=[{kind: vllm, url: 'http://h', secret: 1}]":        "no such field",
		"engine.servers=[{kind: openai, url: 'http://h'}]":                 "model: is required for kind openai",
		"engine.servers=[{kind: vllm, url: 'http://h', token: sk-123456}]": "token: must be a reference to a secret",
		"engine.servers=[{kind: vllm, url: 'http://h'}, {kind: vllm, url: 'http://h'}]": "must name each server " +
			"once, got vllm http://h twice",
		"rollout.top_p=0.9": "compares equal distributions alone, and with rollout.top_p",
		"rollout.top_k=5":   "compares equal distributions alone",
		"rollout.min_p=0.1": "compares equal distributions alone",
		"engine.servers=[]": "compares engine.servers with the trainer, and the recipe names none",
	} {
		_, err := Resolve("quickstart", "", []string{serverSet, recompute, "engine.max_mismatch=0.1", set}, nil, nil)
		require.ErrorContains(t, err, message, set)
		require.NotContains(t, err.Error(), "sk-123456", "what may be a secret is not repeated")
	}
}

// The weights of truncated importance sampling compare equal distributions, so they are refused where sampling leaves
// tokens out: with servers and without, in pipelined runs, and whatever a schedule changes later.
func TestNoWeightsOfCutDistributions(t *testing.T) {
	for _, with := range [][]string{
		{recompute}, {recompute, serverSet}, {recompute, "pipeline.max_staleness=1"},
		{recompute, "schedule.stages=[{from_step: 2, max_tokens: 192}]"},
	} {
		for _, cut := range []string{"rollout.top_p=0.9", "rollout.top_k=5", "rollout.min_p=0.1"} {
			_, err := Resolve("quickstart", "", append([]string{"loss.tis={}", cut}, with...), nil, nil)
			require.ErrorContains(t, err, "loss.tis", "%s with %v", cut, with)
			require.ErrorContains(t, err, "of the tokens that are left", "%s with %v", cut, with)
		}
		for _, whole := range []string{"rollout.top_p=1", "rollout.top_p=0", "evaluation.top_p=0.9"} {
			_, err := Resolve("quickstart", "", append([]string{"loss.tis={}", whole}, with...), nil, nil)
			require.NoError(t, err, "%s with %v", whole, with)
		}
	}
}
