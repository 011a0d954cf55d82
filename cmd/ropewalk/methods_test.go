package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// command runs a command line that needs no server.
func command(t *testing.T, args ...string) (code int, out, messages string) {
	t.Helper()
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	var o, m bytes.Buffer
	code = Run(context.Background(), args, &o, &m)
	return code, o.String(), m.String()
}

func TestMethods(t *testing.T) {
	code, out, _ := command(t, "methods")
	require.Equal(t, exitDone, code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Regexp(t, `^method +loss aggregation +importance-sampling clip +dynamic filtering +`+
		`advantage design +presets$`, lines[0])
	require.Regexp(t, `(?m)^drgrpo +seq-mean-token-sum-norm +ppo_clip −0.2/\+0.2 +none +grpo without std +1$`,
		out)
	require.Regexp(t, `(?m)^sampo +seq-mean-token-mean +gspo −0.003/\+0.004 +dynamic, 3 tries +gigpo +3$`, out)

	code, out, _ = command(t, "methods", "--json")
	require.Equal(t, exitDone, code)
	var table struct {
		Methods []struct {
			Method, About string
			Design        map[string]string
			Presets       []string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &table))
	require.Len(t, table.Methods, len(lines)-1)
	for _, m := range table.Methods {
		require.Len(t, m.Design, 4, m.Method)
		require.NotEmpty(t, m.Presets, m.Method)
	}
}

func TestMethodsOfOne(t *testing.T) {
	code, out, messages := command(t, "methods", "spear")
	require.Equal(t, exitDone, code, messages)
	require.Contains(t, out, "Source: SPEAR Table 8 and Algorithm 1.")
	require.Contains(t, out, "preset   presets/spear-webshop\n")
	require.Regexp(t, `(?m)^loss.name +ppo_clip +clip_low 0.2, clip_high 0.28, dual_clip 10 `, out)
	require.Regexp(t, `(?m)^replay.recalibrate +p50 +size 2048, baselines 10240, `, out)
	require.NotContains(t, out, "planned: policy.checkpoint")

	code, out, _ = command(t, "methods", "quickstart", "--json")
	require.Equal(t, exitDone, code)
	var one struct {
		Slots   []struct{ Slot, Choice, Settings string }
		Planned []string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &one))
	require.Empty(t, one.Planned)
	require.NotEmpty(t, one.Slots)

	code, out, messages = command(t, "methods", "nope")
	require.Equal(t, exitBadInput, code)
	require.Empty(t, out)
	require.Equal(t, "ropewalk: no method or recipe nope; `ropewalk methods` lists them\n", messages)
	code, _, _ = command(t, "methods", "sampo", "--slots")
	require.Equal(t, exitBadInput, code)
	code, _, _ = command(t, "methods", "a", "b")
	require.Equal(t, exitBadInput, code)
}

func TestMethodsSlots(t *testing.T) {
	code, out, _ := command(t, "methods", "--slots")
	require.Equal(t, exitDone, code)
	require.Regexp(t, `(?m)^loss.name +gspo +aggregation seq-mean-token-mean, clip_low 0.003, clip_high 0.004 `,
		out)
	require.Regexp(t, `(?m)^reward.judge +server `, out)
	require.Regexp(t, `(?m)^resample.roc +on `, out)
	code, out, _ = command(t, "methods", "--slots", "--json")
	require.Equal(t, exitDone, code)
	var slots struct {
		Slots []struct {
			Name    string
			Choices []struct{ Name string }
		}
		Pipeline []struct{ Slot, Choice string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &slots))
	require.NotEmpty(t, slots.Pipeline)
	require.Equal(t, "environment.name", slots.Slots[0].Name)
}

// A dry run validates what is there, says what is not, and exits 0; a run exits 2.
func TestPlannedRecipes(t *testing.T) {
	code, out, messages := command(t, "run", "presets/grpo-tir-math", "--dry-run")
	require.Equal(t, exitDone, code)
	require.Contains(t, messages, "recipe grpo-tir-math is valid: seed 1, ")
	require.Contains(t, messages, "planned: environment.settings.train: names no file of questions")
	require.True(t, json.Valid([]byte(out)))
	code, out, _ = command(t, "run", "presets/grpo-tir-math", "--dry-run", "--json")
	require.Equal(t, exitDone, code)
	var dry struct {
		Planned  []string
		Resolved map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(out), &dry))
	require.Contains(t, dry.Planned[0], "environment.settings.train: names no file of questions")
	require.Equal(t, "grpo-tir-math", dry.Resolved["name"])

	code, out, messages = command(t, "run", "presets/grpo-tir-math")
	require.Equal(t, exitBadInput, code)
	require.Empty(t, out)
	require.Contains(t, messages, "presets/grpo-tir-math: the recipe is valid and cannot run "+
		"yet:\nenvironment.settings.train: names no file of questions")
	require.NotContains(t, messages, "starting")
	code, _, messages = command(t, "run", "presets/sampo-alfword", "--dry-run")
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, "no recipe file presets/sampo-alfword")
}

func TestSmokeRecipe(t *testing.T) {
	code, out, messages := command(t, "run", "presets/aepo", "--smoke", "--set", "rollout.samples_per_prompt=6",
		"--dry-run")
	require.Equal(t, exitDone, code, messages)
	require.NotContains(t, messages, "in the place of a tree")
	require.Contains(t, out, `"tree"`)
	require.Contains(t, messages, "recipe aepo-twin is valid: seed 1, 3 steps of 8 prompts × 6 trajectories")
	require.NotContains(t, messages, "environment.name")
	require.Contains(t, out, `"entropy_aware"`)
	code, same, messages := command(t, "run", "presets/aepo", "--twin", "--set", "rollout.oversample=6", "--dry-run")
	require.Equal(t, exitDone, code, messages)
	require.Contains(t, messages, "the smoke recipe samples 4 flat rollouts for each prompt in the place of a tree "+
		"(rollout.tree)\n")
	require.Contains(t, out, `"name": "deep_research"`)
	require.Contains(t, same, `"name": "calc"`)
	require.Contains(t, same, `"oversample": 6`, "an older name of the field")

	file := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nnam: x\n"), 0o600))
	code, _, messages = command(t, "run", file, "--smoke", "--dry-run")
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, "nam: no such field; did you mean name?")
	code, _, messages = command(t, "run", "openai-offline", "--smoke")
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, "--smoke: openai-offline trains nothing")
}
