package recipes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const gymnasium = `version: 1
name: gym
steps: 1
environment: {name: python, settings: {module: "x:y"}}
%
rollout: {prompts: 2, samples_per_prompt: 2, max_turns: 4, max_turn_tokens: 16, max_tokens: 128, shard_groups: 1}
layout: turns
reward: {name: arlarena}
advantage: {name: grpo, std: true}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001, minibatches: 1}
`

// A recipe that clones nothing needs no optimizer of the cloning, and may have one. A recipe that clones needs it.
func TestNothingIsClonedWithoutSteps(t *testing.T) {
	parse := func(warm string) (*Recipe, error) {
		return Parse("f", []byte(strings.Replace(gymnasium, "%", warm, 1)))
	}
	r, err := parse("warm_start: {steps: 0}")
	require.NoError(t, err)
	canonical, err := r.Canonical()
	require.NoError(t, err)
	require.NotContains(t, strings.Split(string(canonical), `"warm_start"`)[1], "optimizer")
	again, err := ParseCommitted("f", canonical, nil)
	require.NoError(t, err)
	require.Equal(t, r, again)
	r, err = parse("warm_start: {steps: 0, optimizer: {lr: 0.001}}")
	require.NoError(t, err)
	canonical, err = r.Canonical()
	require.NoError(t, err)
	require.Contains(t, string(canonical), `"lr": 0.001`)
	for warm, want := range map[string]string{
		"":                       "warm_start: is required",
		"warm_start: {}":         "warm_start.optimizer: is required",
		"warm_start: {steps: 2}": "warm_start.optimizer: is required",
	} {
		_, err := parse(warm)
		require.ErrorContains(t, err, want, warm)
	}
}
