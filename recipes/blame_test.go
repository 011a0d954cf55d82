package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A fault that an override brings to a line of the recipe blames the override, and names the line.
func TestOverridesAreBlamed(t *testing.T) {
	const file = "extends: quickstart\nname: mine\nrollout:\n  prompts: 8\n  samples_per_prompt: 8\n" +
		"  max_tokens: 190\nresample:\n  roc: {keep: 4}\n"
	for _, c := range []struct {
		set  []string
		want string
	}{
		{[]string{"rollout.samples_per_prompt=2"}, "--set rollout.samples_per_prompt=2: resample.roc.keep: must be ≤ " +
			"rollout.samples_per_prompt (2), got 4 (mine.yaml:8)"},
		{[]string{"steps=3", "policy.max_positions=64", "seed=2"},
			"--set policy.max_positions=64: rollout.max_tokens: must be ≤ policy.max_positions (64), got 190 " +
				"(mine.yaml:6)"},
		{[]string{"policy.max_positions=64", "policy.max_positions=48"},
			"--set policy.max_positions=48: rollout.max_tokens: must be ≤ policy.max_positions (48), got 190 " +
				"(mine.yaml:6)"},
		{[]string{"loss.name=sapo"}, "--set loss.name=sapo: loss.clip_high: cannot be combined with loss sapo; it " +
			"belongs to "},
		{[]string{"rollout.prompts=0"}, "--set rollout.prompts=0: must be ≥ 1, got 0"},
		{[]string{"policy.max_positions=64", "resample.roc.keep=16"},
			"--set resample.roc.keep=16: must be ≤ rollout.samples_per_prompt (8), got 16\n" +
				"--set policy.max_positions=64: rollout.max_tokens: must be ≤ policy.max_positions (64), got 190 " +
				"(mine.yaml:6)"},
	} {
		_, err := Resolve("mine.yaml", file, c.set, nil, nil)
		require.ErrorContains(t, err, c.want)
	}
	// A fault of the file's own stays at its line.
	_, err := Resolve("mine.yaml", file+"optimizer: {minibatches: 0}\n", []string{"steps=3"}, nil, nil)
	require.EqualError(t, err, "mine.yaml:9: optimizer.minibatches: must be ≥ 1, got 0")
}

// A shard of more groups than a step has is one of all of them.
func TestShardsHoldAtMostAStep(t *testing.T) {
	r, err := Resolve("quickstart", "", []string{"rollout.prompts=8"}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, 8, r.Recipe.Rollout.ShardGroups)
	require.Equal(t, []string{"rollout.shard_groups is 32, and a step has 8 prompts: a shard has 8"}, r.Notes)
	same, err := Resolve("quickstart", "", []string{"rollout.prompts=8", "rollout.shard_groups=8"}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, same.Digest, r.Digest)
	require.Empty(t, same.Notes)
}
