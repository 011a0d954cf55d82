package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// questionsRecipe is a recipe of questions, up to its reward.
const questionsRecipe = `version: 1
name: questions
steps: 1
environment: {name: %s, settings: {train: %q%s}}
engine: {kind: cpu}
warm_start: {steps: 1, optimizer: {lr: 0.001}}
rollout: {prompts: 4, samples_per_prompt: 4, shard_groups: 4}
advantage: {name: grpo, std: true}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.001}
reward: %s
`

// Files of questions are recorded with their digest, and the presets that name their environments lack a file alone.
func TestFilesOfQuestionsArePinned(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `{"question": "What is %d + x?", "answer": "%d+x"}`+"\n", i, i)
	}
	file := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	resolve := func(environment, file, more string) (*Resolved, error) {
		return Resolve("questions", fmt.Sprintf(questionsRecipe, environment, file, more,
			"{name: rstar2_outcome, symbolic: true}"), nil, nil, nil)
	}
	for environment, protocol := range map[string]string{"math": "boxed", "dapo_math": "hermes", "tir_math": "tir",
		"rstar2_math": "rstar2"} {
		r, err := resolve(environment, file, "")
		require.NoError(t, err)
		require.Len(t, r.Recipe.Environment.Settings["train_sha256"], 64)
		require.Empty(t, r.Recipe.Planned())
		require.True(t, r.Recipe.Needs().Grade, "golds that are expressions are compared by sympy")
		p, err := r.Recipe.Protocol()
		require.NoError(t, err)
		require.Equal(t, protocol, p.Spec().Name)
	}
	mapped, err := resolve("math", file, ", columns: {question: '{question}!', answer: answer}, "+
		"filter: {answer: '!= 3+x'}")
	require.NoError(t, err)
	require.JSONEq(t, `{"question": "{question}!", "answer": "answer"}`,
		mapped.Recipe.Environment.Settings["columns"].(string))
	require.Equal(t, `{"answer":"!= 3+x"}`, mapped.Recipe.Environment.Settings["filter"])
	_, err = resolve("math", file, ", columns: [question]")
	require.ErrorContains(t, err, "environment.settings.columns: must be text, got a list")
	_, err = resolve("math", file, ", columns: {answer: gold}")
	require.ErrorContains(t, err, file+":1: answer (gold) is missing or blank; the row has answer, question")
	require.NoError(t, os.WriteFile(file, []byte(`{"question": "a"}`), 0o600))
	_, err = resolve("math", file, "")
	require.ErrorContains(t, err, "environment.settings: train: "+file+":1: answer is missing or blank")
	_, err = resolve("math", "s3://data/f.jsonl", "")
	require.ErrorContains(t, err, "environment.settings: train: a remote file wants its digest")
	remote, err := resolve("math", "s3://data/f.jsonl", ", train_sha256: '"+strings.Repeat("0", 64)+"'")
	require.NoError(t, err)
	require.Empty(t, remote.Recipe.Planned(), "a worker reads it")

	for _, preset := range []string{"presets/spear-dapo-math", "presets/grpo-tir-math", "presets/rstar2"} {
		planned := resolved(t, preset).Recipe.Planned()
		require.Equal(t, "environment.settings.train: names no file of questions; set it to a path, s3://BUCKET/KEY "+
			"or https://…", planned[0])
		require.NotContains(t, strings.Join(planned, "\n"), "policy.checkpoint")
		require.NotContains(t, strings.Join(planned, "\n"), "environment.name")
	}
}

// Questions that a model's own template asks have rewards that need neither a box nor a tag.
func TestRewardsOfOnesOwnQuestions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"question": "1 + 1?", "answer": 2}`), 0o600))
	recipe := strings.Replace(questionsRecipe, "warm_start: {steps: 1, optimizer: {lr: 0.001}}\n", "", 1)
	for environment, rewards := range map[string][]string{
		"chat": {"last_number", "rstar2_outcome", "exact_match", "f1"}, "qa": {"exact_match", "f1"}} {
		for _, reward := range rewards {
			text := fmt.Sprintf(recipe, environment, file, "", "{name: "+reward+"}")
			r, err := Resolve("questions", text, nil, nil, nil)
			require.NoError(t, err, "%s %s", environment, reward)
			p, err := r.Recipe.Protocol()
			require.NoError(t, err)
			require.Equal(t, "chat", p.Spec().Name)
			require.Empty(t, r.Recipe.Rollout.ToolNames())
		}
	}
	require.NoError(t, os.WriteFile(file, []byte(`{"question": "1 + 1?", "functions": [{"name": "f"}], "answer": `+
		`[{"name": "f", "arguments": {}}]}`), 0o600))
	brought := fmt.Sprintf(recipe, "functions", file, ", columns: {functions: functions | json, answer: answer | json}",
		"{name: calls}")
	_, err := Resolve("questions", brought, nil, nil, nil)
	require.NoError(t, err)
	for set, want := range map[string]string{
		"rollout.tools=[python]":  "must be empty: each task of functions brings its functions",
		"rollout.protocol=tir":    "must be chat or hermes, because the tasks of functions bring functions",
		"reward.name=last_number": "must be one of calls, python",
	} {
		_, err := Resolve("questions", brought, []string{set}, nil, nil)
		require.ErrorContains(t, err, want)
	}
}

// Programs are rewarded by their tests alone, and only a protocol of programs has them.
func TestRewardsOfPrograms(t *testing.T) {
	resolve := func(reward string, set ...string) (*Resolved, error) {
		return Resolve("code", fmt.Sprintf(questionsRecipe, "code", "", "", reward), set, nil, nil)
	}
	r, err := resolve("{name: unit_tests}")
	require.NoError(t, err)
	require.Empty(t, r.Recipe.Planned(), "generated tasks need no file")
	require.True(t, r.Recipe.Needs().Grade)
	for reward, want := range map[string]string{
		"{name: unit_tests, symbolic: true}": "reward.symbolic",

		"{name: rstar2_outcome}": "must be one of unit_tests, python in a recipe of code, got rstar2_outcome",
	} {
		_, err := resolve(reward)
		require.ErrorContains(t, err, want)
	}
	for protocol, want := range map[string]string{
		"hermes":       "unit_tests tests a program, and an answer of rollout.protocol hermes is none",
		"think_action": "think_action is a protocol of actions, and code takes none",
	} {
		_, err := resolve("{name: unit_tests}", "rollout.protocol="+protocol)
		require.ErrorContains(t, err, want)
	}
}
