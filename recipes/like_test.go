package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A misspelt name leads to the recipes that it may mean.
func TestLike(t *testing.T) {
	for name, want := range map[string][]string{
		"quikstart":                 {"quickstart"},
		"Quickstart":                {"quickstart"},
		"quickstart.yml":            {"quickstart"},
		"my/folder/quickstart.yaml": {"quickstart"},
		"drgrpo":                    {"presets/drgrpo"},
		"presets/drgrp":             {"presets/drgrpo"},
		"presets/AEPO":              {"presets/aepo"},
		"presets/sampo-alfword":     {"presets/sampo-alfworld"},
		"presets/gigpo": {"presets/gigpo-alfworld", "presets/gigpo-deep-research", "presets/gigpo-sokoban",
			"presets/gigpo-webshop"},
		"dapo": {
			"presets/dapo-alfworld", "presets/dapo-deep-research", "presets/dapo-sokoban",
			"presets/dapo-tir-math", "presets/dapo-webshop", "presets/dapo-with-gigpo-alfworld",
		},
		"presets/reinforce-pp-basline": {"presets/reinforce-pp-baseline"},
		"nothing-like-any":             nil,
		"":                             nil,
	} {
		require.Equal(t, want, Like(name), name)
	}
	require.LessOrEqual(t, len(Like("sapo")), mostLike)
}

// A field or value that does not exist leads to the one that is meant, with the rest of its path.
func TestSuggestionsOfOverrides(t *testing.T) {
	for set, want := range map[string]string{
		"engine.kind=gpu":    "must be one of auto, cpu, torch, tinker (did you mean torch?), got \"gpu\"",
		"engine.kind=CUDA":   "must be one of auto, cpu, torch, tinker (did you mean torch?), got \"CUDA\"",
		"engine.kind=touch":  "must be one of auto, cpu, torch, tinker (did you mean torch?), got \"touch\"",
		"engine.kind=CPU":    "must be one of auto, cpu, torch, tinker (did you mean cpu?), got \"CPU\"",
		"lr=1":               "no such field; did you mean optimizer.lr?",
		"promts=4":           "no such field; did you mean rollout.prompts?",
		"optimiser.lr=1":     "no such field; did you mean optimizer.lr?",
		"optimiser.rl=1":     "no such field; did you mean optimizer.lr?",
		"resmple.rok.keep=1": "no such field; did you mean resample.roc.keep?",
		"xyzzy.lr=1":         "no such field; there are extends, version, name,",
	} {
		_, err := Resolve("quickstart", "", []string{set}, nil, nil)
		require.ErrorContains(t, err, "--set "+set+": "+want)
	}
	_, err := Resolve("quickstart", "", []string{"loss.name=grpo"}, nil, nil)
	require.ErrorContains(t, err, "(grpo is a choice of advantage.name), got \"grpo\"")
}

func TestFieldLike(t *testing.T) {
	for name, want := range map[string]string{
		"steps": "steps", "lr": "optimizer.lr", "temperature": "rollout.temperature", "optimizer.lr": "optimizer.lr",
		"samples-per-prompt": "rollout.samples_per_prompt", "xyzzy": "",
	} {
		require.Equal(t, want, FieldLike(name), name)
	}
}
