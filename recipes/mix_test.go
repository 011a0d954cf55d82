package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const mixedWorlds = `version: 1
name: worlds
steps: 1
environment:
  name: mix
  parts:
    - {name: sokoban, label: small, weight: 2, settings: {size: 5, max_moves: 6}}
    - {name: sokoban, label: large, settings: {size: 6, max_moves: 6}}
    - {name: alfworld, settings: {rooms: bathroom}}
engine: {kind: cpu}
policy: {layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 512}
warm_start: {steps: 1, batch: 2, noise: 0.1, optimizer: {lr: 0.001}}
rollout: {prompts: 4, samples_per_prompt: 4, max_turns: 6, max_turn_tokens: 32, max_tokens: 512, shard_groups: 2}
sandbox: {min_tier: landlock}
layout: turns
reward: {name: arlarena}
advantage: {name: grpo, std: true}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001}
evaluation: {problems: 6, samples: 1}
`

// mixedQuestions is a recipe of questions; FILE is a file of them.
const mixedQuestions = `version: 1
name: questions
steps: 1
environment:
  name: mix
  parts:
    - {name: calc, weight: 3, level_shares: {'2': 1}}
    - {name: rstar2_math, settings: {train: FILE, held_out_share: 0.3}}
engine: {kind: cpu}
policy: {layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 256}
warm_start: {steps: 1, batch: 2, noise: 0.1, optimizer: {lr: 0.001}}
rollout: {prompts: 4, samples_per_prompt: 4, max_turns: 2, max_turn_tokens: 64, max_tokens: 256, shard_groups: 2}
sandbox: {min_tier: landlock}
reward: {name: rstar2_outcome}
advantage: {name: grpo, std: true}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001}
evaluation: {problems: 8, samples: 1}
`

// questionsIn returns mixedQuestions with a file.
func questionsIn(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "q.jsonl")
	var b strings.Builder
	for _, n := range strings.Split("1 2 3 4 5 6 7 8 9 10 11 12", " ") {
		b.WriteString(`{"question": "What is ` + n + ` + 1?", "answer": "` + n + `"}` + "\n")
	}
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return strings.Replace(mixedQuestions, "FILE", path, 1)
}

func TestMixedRecipes(t *testing.T) {
	for name, text := range map[string]string{"worlds": mixedWorlds, "questions": questionsIn(t)} {
		r, err := Parse("f", []byte(text))
		require.NoError(t, err, name)
		first, err := r.Canonical()
		require.NoError(t, err)
		again, err := ParseCommitted("f", first, nil)
		require.NoError(t, err, name)
		second, err := again.Canonical()
		require.NoError(t, err)
		require.Equal(t, string(first), string(second), name)
		require.Empty(t, r.Planned())
		e, err := r.Open()
		require.NoError(t, err)
		require.Equal(t, Mix, e.Name())
		d := r.Environment.Declaration()
		require.Equal(t, name == "worlds", d.Interactive)
		require.Equal(t, name == "questions", r.Environment.CallsTools())
	}
	r, err := Parse("f", []byte(questionsIn(t)))
	require.NoError(t, err)
	require.Len(t, r.Environment.Parts[1].Settings["train_sha256"], 64, "files of parts are pinned")
	require.Equal(t, 1.0, r.Environment.Parts[0].LevelShares["2"])
	require.Nil(t, r.Environment.Parts[1].LevelShares)
}

// Each part has the fields of its environment, and parts that cannot share a policy are refused with the reason.
func TestBadMixes(t *testing.T) {
	questions := questionsIn(t)
	for name, c := range map[string]struct{ text, old, new, fault string }{
		"unknown": {mixedWorlds,
			"{name: alfworld, settings: {rooms: bathroom}}",
			"{name: chess}",
			"f:9: environment.parts[2].name: must be one of calc, alfworld",
		},
		"a mix": {mixedWorlds,
			"{name: alfworld, settings: {rooms: bathroom}}",
			"{name: mix}",
			"environment.parts[2].name: must be one of calc, alfworld",
		},
		"setting": {mixedWorlds,
			"rooms: bathroom",
			"size: 5",
			"f:9: environment.parts[2].settings.size: no such field",
		},
		"other field": {mixedWorlds,
			"label: large",
			"level_shares: {'2': 1}",
			"environment.parts[1].level_shares: has no place in a recipe of sokoban",
		},
		"same label": {mixedWorlds,
			"label: small, ",
			"",
			"",
		},
		"two labels": {mixedWorlds,
			"label: small",
			"label: large",
			"f:6: environment.parts: two parts are called large",
		},
		"weight": {mixedWorlds,
			"weight: 2",
			"weight: 0",
			"environment.parts[0].weight: must be ≥ 0.001",
		},
		"too few": {mixedWorlds,
			"problems: 6",
			"problems: 1",
			"environment.parts: part ",
		},
		"kinds": {mixedWorlds,
			"{name: alfworld, settings: {rooms: bathroom}}",
			"{name: calc}",
			"part small is played by actions, and part calc asks questions",
		},
		"opened": {mixedWorlds,
			"size: 6, max_moves: 6",
			"size: 6, max_moves: 9",
			"environment.parts: open environment mix: part large: ",
		},
		"reward": {mixedWorlds,
			"{name: arlarena}",
			"{name: rstar2_outcome}",
			"reward.name: must be one of arlarena",
		},
		"settings": {mixedWorlds,
			"  parts:",
			"  settings: {size: 5}\n  parts:",
			"environment.settings: has no place in a recipe of mix",
		},
		"tools": {questions,
			"max_turns: 2",
			"max_turns: 2, tools: [search]",
			"rollout.tools: must be among python in a recipe of mix, got search",
		},
		"protocols": {questions,
			"name: rstar2_math",
			"name: math",
			"rollout.protocol: must be named, because the parts of the mix have no common one of their own " +
				"(calc: rstar2; math: boxed)",
		},
		"no demonstrations": {mixedWorlds,
			"{name: alfworld, settings: {rooms: bathroom}}",
			"{name: python, settings: {module: 'a:b', actions: 'x,y'}}",
			"warm_start.steps: must be 0 because of part python (only questions ",
		},
		"nothing else": {mixedWorlds,
			"name: mix\n",
			"name: sokoban\n",
			"environment.parts: has no place in a recipe of sokoban; it belongs to mix",
		},
		"alone": {mixedWorlds,
			"    - {name: sokoban, label: large, settings: {size: 6, max_moves: 6}}\n    - {name: " +
				"alfworld, settings: {rooms: bathroom}}\n",
			"",
			"a mix has at least two parts, got 1",
		},
		"data": {questions,
			"engine:",
			"data: {deduplicate: true}\nengine:",
			"data: has no place in a recipe of mix: it filters the one list of tasks of an environment",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, c.text, c.old)
			_, err := Parse("f", []byte(strings.Replace(c.text, c.old, c.new, 1)))
			if c.fault == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.fault)
			require.NotContains(t, err.Error(), "%!")
		})
	}
}

// A recipe of a mix is valid by the published schema too.
func TestMixesFitTheSchema(t *testing.T) {
	s := compiled(t)
	require.NoError(t, s.Validate(instance(t, []byte(mixedWorlds))))
	for old, wrong := range map[string]string{"rooms: bathroom": "size: 5", "label: large": "level_shares: {'2': 1}",
		"name: alfworld": "name: mix"} {
		require.Error(t, s.Validate(instance(t, []byte(strings.Replace(mixedWorlds, old, wrong, 1)))), wrong)
	}
}
