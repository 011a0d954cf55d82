package activities_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/data"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// A given model answers each task that passes the other filters. The counts, the answers and the model are committed,
// and decide which tasks are drawn. Another attempt answers nothing again.
func TestTasksAreJudgedByTheirDifficulty(t *testing.T) {
	w, recipe := dataBench(t)
	_, err := w.train(t, workflows.TrainRunInput{Run: "base", RecipeYAML: recipe("{deduplicate: true}")})
	require.NoError(t, err)
	section := "{deduplicate: true, integer_answers: true, " +
		"difficulty: {model: base@1, samples: 3, at_least: 1, at_most: 2, shard_tasks: 2}}"
	_, err = w.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: recipe(section)})
	require.NoError(t, err)

	prepared, _, found, err := w.record.Lookup(t.Context(), schema.AtInit("r", schema.StageData))
	require.NoError(t, err)
	require.True(t, found)
	base, _, _, err := w.record.Lookup(t.Context(), schema.At("base", 1, schema.StageUpdate))
	require.NoError(t, err)
	require.Equal(t, base.Checkpoint.Weights, prepared.Note["model_weights"])
	require.Equal(t, "base@1", prepared.Note["model"])

	answers, ref, found, err := w.record.Lookup(t.Context(), schema.AtInit("r", schema.StageAnswers))
	require.NoError(t, err)
	require.True(t, found)
	require.Contains(t, prepared.Inputs, ref)
	require.Len(t, answers.Parts, 4, "seven tasks, two in a shard")
	matched, n := answered(t, w, answers)
	rows := taskRowsOf(t, w, prepared)
	require.Len(t, rows, 9)
	kept := 0
	for _, r := range rows {
		if r.Reason == "duplicate" || r.Reason == "not_integer" {
			require.Nil(t, r.Answers)
			require.Zero(t, n[r.Place])
			continue
		}
		require.Equal(t, 3, n[r.Place])
		require.Equal(t, []int{3, matched[r.Place]}, []int{int(*r.Answers), int(*r.Matched)})
		require.Equal(t, matched[r.Place] >= 1 && matched[r.Place] <= 2, r.Kept, r)
		if r.Kept {
			kept++
		}
	}
	require.Positive(t, kept)
	verified, err := verify.Run(t.Context(), w.store, "r")
	require.NoError(t, err)
	require.Empty(t, verified.Faults)

	part, _, _, err := w.record.Lookup(t.Context(), schema.AtInit("r", schema.StageAnswers).WithShard(1))
	require.NoError(t, err)
	candidates := part.Inputs[1]
	again, err := data.AnswerTasks{Worker: w.deps}.Execute(t.Context(), &stage.Env{}, api.AnswersInput{
		Scope: api.Scope{Run: "r", Step: api.InitStep, Config: part.Inputs[0]}, Candidates: candidates, Shard: 1,
		Shards: 4})
	require.NoError(t, err)
	require.True(t, again.Adopted)
	require.Equal(t, 6, again.Answers)
}

// answered counts the answers and the right ones of each task.
func answered(t *testing.T, w *bench, m schema.Manifest) (matched, n map[int32]int) {
	t.Helper()
	matched, n = map[int32]int{}, map[int32]int{}
	parts, err := w.record.Parts(t.Context(), m)
	require.NoError(t, err)
	for _, p := range parts {
		for _, s := range p.ShardsOf(schema.TaskAnswers) {
			data, err := w.record.ReadShard(t.Context(), s)
			require.NoError(t, err)
			rows, err := schema.Decode[schema.TaskAnswerRow](data)
			require.NoError(t, err)
			for _, r := range rows {
				n[r.Place]++
				require.Equal(t, r.FinalAnswer == r.Gold, r.Matched)
				require.NotEmpty(t, r.Text)
				if r.Matched {
					matched[r.Place]++
				}
			}
		}
	}
	return matched, n
}

// A folder's model is committed by the run, so that workers need no folder. Other models are refused by name.
func TestTheModelOfTheDifficulty(t *testing.T) {
	w, recipe := dataBench(t)
	_, err := w.train(t, workflows.TrainRunInput{Run: "base", RecipeYAML: recipe("{deduplicate: true}")})
	require.NoError(t, err)
	warm, _, _, err := w.record.Lookup(t.Context(), schema.AtInit("base", schema.StageWarmStart))
	require.NoError(t, err)
	folder := t.TempDir()
	for _, f := range warm.Checkpoint.Files {
		data, err := w.store.Get(t.Context(), warm.Checkpoint.Key(f))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, f.Name), data, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "README.md"), []byte("no part of it"), 0o600))
	_, err = w.train(t, workflows.TrainRunInput{Run: "f", RecipeYAML: recipe("{difficulty: {model: " + folder +
		", samples: 2, at_least: 0, at_most: 2, weights: " + warm.Checkpoint.Weights + "}}")})
	require.NoError(t, err)
	m, _, _, err := w.record.Lookup(t.Context(), schema.AtInit("f", schema.StageCandidates))
	require.NoError(t, err)
	require.Equal(t, warm.Checkpoint.Weights, m.Checkpoint.Weights)
	require.False(t, slices.ContainsFunc(m.Checkpoint.Files,
		func(f schema.CheckpointFile) bool { return f.Name == "README.md" }))
	verified, err := verify.Run(t.Context(), w.store, "f")
	require.NoError(t, err)
	require.Empty(t, verified.Faults)

	at := 0
	for section, want := range map[string]string{
		"{difficulty: {model: base@9}}":                         "run base has committed no policy after step 9",
		"{difficulty: {model: nothing}}":                        "run nothing has committed no policy after step 0",
		"{difficulty: {model: /nowhere}}":                       "data.difficulty.model: /nowhere",
		"{difficulty: {model: a b}}":                            "RUN, RUN@STEP or an absolute path",
		"{difficulty: {model: base, at_least: 17}}":             "has at_least 17, more than its 16 samples",
		"{difficulty: {model: base, at_least: 0}}":              "keeps every task",
		"{difficulty: {model: base, weights: " + unknown + "}}": "the weights digest of base is",
	} {
		at++
		_, err := w.train(t, workflows.TrainRunInput{Run: "z" + string(rune('a'+at)), RecipeYAML: recipe(section)})
		require.ErrorContains(t, err, want, section)
	}
}

var unknown = strings.Repeat("a", 64)
