package runs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

const mixed = `version: 1
name: mixed
steps: 2
environment: {name: mix, parts: [{name: sokoban, label: easy, settings: {size: 5, max_moves: 4}},
  {name: sokoban, label: hard, settings: {size: 7, max_moves: 4}}, {name: alfworld, settings: {rooms: bathroom, places: 3}}]}
engine: {kind: cpu}
policy: {layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 1024}
warm_start: {steps: 2, batch: 8, optimizer: {lr: 0.001}}
rollout: {prompts: 4, samples_per_prompt: 2, max_turns: 4, max_turn_tokens: 48, max_tokens: 1024, shard_groups: 2}
layout: turns
reward: {name: spear}
advantage: {name: grpo, std: true}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001, minibatches: 1}
evaluation: {problems: 6, samples: 1, greedy: false}
`

// A policy of a mix is measured on one of its parts, by the part's own settings and the mix's turns and reward.
func TestAPartOfAMixIsMeasuredAlone(t *testing.T) {
	resolved, err := recipes.Resolve("mixed", mixed, nil, nil, nil)
	require.NoError(t, err)
	measure := func(environment string, set ...string) (*recipes.Recipe, error) {
		e := Evaluation{Of: "run r", Environment: environment, Set: set,
			Policy: api.PolicyRef{Digest: strings.Repeat("d", 64), Step: 2, Manifest: schema.Ref{Key: "k"}}}
		require.NoError(t, json.Unmarshal([]byte(resolved.JSON), &e.Recipe))
		_, out, err := e.Start(time.Unix(0, 0))
		if err != nil {
			return nil, err
		}
		return &out.Recipe, nil
	}
	for name, want := range map[string]struct{ environment, setting, value string }{
		"easy": {"sokoban", "size", "5"}, "hard": {"sokoban", "size", "7"}, "alfworld": {"alfworld", "places", "3"},
	} {
		r, err := measure(name)
		require.NoError(t, err, name)
		require.Equal(t, want.environment, r.Environment.Name)
		require.EqualValues(t, want.value, text(t, r.Environment.Settings[want.setting]))
		require.Equal(t, 4, r.Rollout.MaxTurns)
		require.Equal(t, "spear", r.Reward.Name)
	}
	r, err := measure("easy", "environment.settings.size=6", "evaluation.samples=3")
	require.NoError(t, err)
	require.EqualValues(t, "6", text(t, r.Environment.Settings["size"]))
	require.Equal(t, 3, r.Evaluation.Samples)
	r, err = measure("webshop")
	require.NoError(t, err, "another environment, with settings of its own")
	require.Equal(t, "webshop", r.Environment.Name)
	r, err = measure("")
	require.NoError(t, err)
	require.Equal(t, recipes.Mix, r.Environment.Name)
	for name, message := range map[string]string{
		"sokoban": "2 parts of the mix are of sokoban: name one by its label: easy, hard",
		"nothing": `the mix has no part "nothing", and there is no such environment; its parts are easy, hard, ` +
			"alfworld",
	} {
		_, err := measure(name)
		var bad badinput.Error
		require.ErrorAs(t, err, &bad)
		require.ErrorContains(t, err, message)
	}
}

const asked = `version: 1
name: asked
steps: 2
environment: {name: mix, parts: [{name: calc}, {name: math, label: school,
  settings: {train: %q, held_out_share: 0.5}}]}
engine: {kind: cpu}
policy: {layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 1024}
warm_start: {steps: 0}
rollout: {protocol: hermes, prompts: 4, samples_per_prompt: 2, max_turns: 4, max_turn_tokens: 48, max_tokens: 1024,
  shard_groups: 2, max_calls: 3, max_turn_calls: 2, max_episode_tool_text_bytes: 900}
reward: {name: spear}
advantage: {name: grpo, std: true}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001, minibatches: 1}
evaluation: {problems: 6, samples: 1, greedy: false}
`

// A part that asks questions is measured with the mix's tools and its budgets of calls.
func TestAPartKeepsTheBudgetsOfItsMix(t *testing.T) {
	file := filepath.Join(t.TempDir(), "train.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"question": "1 + 1?", "answer": "2"}
{"question": "1 + 2?", "answer": "3"}
{"question": "1 + 3?", "answer": "4"}
{"question": "1 + 4?", "answer": "5"}
`), 0o600))
	resolved, err := recipes.Resolve("asked", fmt.Sprintf(asked, file), nil, nil, nil)
	require.NoError(t, err)
	for _, label := range []string{"calc", "school"} {
		e := Evaluation{Of: "run r", Environment: label,
			Policy: api.PolicyRef{Digest: strings.Repeat("d", 64), Step: 2, Manifest: schema.Ref{Key: "k"}}}
		require.NoError(t, json.Unmarshal([]byte(resolved.JSON), &e.Recipe))
		_, out, err := e.Start(time.Unix(0, 0))
		require.NoError(t, err, label)
		want, got := resolved.Recipe.Rollout, out.Recipe.Rollout
		require.Equal(t, want.Budgets(), got.Budgets(), label)
		require.Equal(t, want.ToolNames(), got.ToolNames(), label)
		require.Equal(t, want.Protocol, got.Protocol, label)
	}
}

// text is a setting as a recipe writes it.
func text(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	require.NoError(t, err)
	return string(out)
}
