package activities_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// Public sets train a published model by its own chat template, in the environments chat and qa: with columns that are
// recognised or named, and with several evaluation sets, each of which has its figure.
func TestFilesOfQuestionsTrainPublishedModels(t *testing.T) {
	model, folder := publishedFolder(t), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	train := write("train.json", `[{"problem": "one and two?", "expected_answer": "3"},`+
		`{"problem": "two and two?", "expected_answer": "4"}]`)
	first := write("first.jsonl", `{"question": "one and one?", "answer": "so\n#### 2"}`)
	second := write("second.csv", "problem,answer\nthree?,3\nfour?,4\n")
	golds := write("golds.jsonl", `{"question": "who?", "golden_answers": ["one", "two"]}`+"\n"+
		`{"question": "where?", "golden_answers": ["and"]}`)
	held := write("held.jsonl", `{"question": "when?", "golden_answers": ["one"]}`)
	named := write("named.jsonl", `{"q": {"text": "who? one"}, "gold": "two", "split": "a"}`+"\n"+
		`{"q": {"text": "who? two"}, "gold": "one", "split": "b"}`)
	other := write("other.jsonl", `{"q": {"text": "who? and"}, "gold": "two", "split": "b"}`)
	calls := write("weather.json", `{"id": "simple_0", "question": [[{"role": "user", "content": "one?"}]], `+
		`"function": [{"name": "w.of", "parameters": {"type": "dict", "properties": {"n": {"type": "float"}}}}]}`+"\n"+
		`{"id": "irrelevance_0", "question": [[{"role": "user", "content": "who?"}]], "function": [{"name": "f"}]}`)
	none := write("none.json", `{"id": "irrelevance_1", "question": [[{"role": "user", "content": "when?"}]], `+
		`"function": [{"name": "f"}]}`)
	require.NoError(t, os.Mkdir(filepath.Join(folder, "possible_answer"), 0o700))
	write("possible_answer/weather.json", `{"id": "simple_0", "ground_truth": [{"w.of": {"n": [1]}}]}`)
	for run, c := range map[string]struct {
		environment, reward string
		questions           []string
		types               map[string]int
	}{
		"chat": {"name: chat, settings: {train: '" + train + "', held_out: '" + first + "," + second + "'}",
			"last_number", []string{"one and two?", "two and two?"}, map[string]int{"first": 1, "second": 2}},
		"qa": {"name: qa, settings: {train: '" + golds + "', held_out: '" + held + "'}", "f1",
			[]string{"who?", "where?"}, nil},
		"mapped": {"name: qa, settings: {train: '" + named + "', held_out: '" + other +
			"', columns: {question: q.text, answer: gold}, filter: {split: b}}", "exact_match", []string{"who? two"},
			nil},
		"calls": {"name: functions, settings: {train: '" + calls + "', held_out: '" + none + "'}", "calls",
			[]string{"one?", "who?"}, nil},
	} {
		objects := mem.New()
		deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{})
		b := &bench{store: objects, record: commit.New(objects), deps: deps}
		out, err := b.train(t, workflows.TrainRunInput{Run: run, Recipe: "smollm2", Set: []string{
			"policy={checkpoint: '" + model + "'}", "steps=1", "rollout.prompts=2", "rollout.samples_per_prompt=2",
			"rollout.max_turn_tokens=16", "resample={}", "environment={" + c.environment + "}",
			"reward={name: " + c.reward + "}", "evaluation={problems: 1000, samples: 1, greedy: false}"}})
		require.NoError(t, err, run)
		require.NoError(t, deps.Close())
		for _, row := range stepRows[schema.PromptRow](t, objects, run, 1, schema.StagePrompts) {
			require.Contains(t, c.questions, row.Problem, run)
		}
		require.Len(t, stepRows[schema.RewardRow](t, objects, run, 1, schema.StageReward), 4, run)
		for name, n := range c.types {
			require.Equal(t, n, out.Final.ByType[name].N, "%s: %+v", run, out.Final)
		}
	}
}
