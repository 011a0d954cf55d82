package activities_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/env/math"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/download"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// dataBench is a store of two files and a worker whose policy answers 1 or 2.
func dataBench(t *testing.T) (w *bench, recipe func(data string) string) {
	t.Helper()
	tok, err := rollout.TokenizerOf(protocol.Boxed{}, math.Plain)
	require.NoError(t, err)
	var train, held strings.Builder
	for i := range 6 {
		fmt.Fprintf(&train, `{"question": "How many apples are in basket %d?", "answer": "1"}`+"\n", i)
		fmt.Fprintf(&held, `{"question": "How many pears are in box %d?", "answer": "1"}`+"\n", i)
	}
	train.WriteString(`{"question": "How many APPLES are in basket 5", "answer": "1"}` + "\n" +
		`{"question": "What is a half?", "answer": "1/2"}` + "\n" +
		`{"question": "How many pears are in box 3", "answer": "1"}` + "\n")
	data, objects := mem.New(), mem.New()
	require.NoError(t, data.Put(t.Context(), "train.jsonl", []byte(train.String())))
	require.NoError(t, data.Put(t.Context(), "held.jsonl", []byte(held.String())))
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{
		Rollout: func(e policy.Engine) policy.Engine { return boxer{e, tok, []string{"1", "2"}} },
		Fetch:   download.Opener{Bucket: func(string) (store.Store, error) { return data, nil }}.Open,
	})
	return &bench{store: objects, record: commit.New(objects), deps: deps}, func(section string) string {
		settings := fmt.Sprintf("{train: 's3://data/train.jsonl', train_sha256: '%x', "+
			"held_out: 's3://data/held.jsonl', held_out_sha256: '%x'}",
			sha256.Sum256([]byte(train.String())), sha256.Sum256([]byte(held.String())))
		text := strings.ReplaceAll(questionRecipe, ", symbolic: true", "")
		from := strings.Index(text, "{name: math")
		to := from + strings.Index(text[from:], "\n")
		return text[:from] + "{name: math, settings: " + settings + "}\ndata: " + section + text[to:]
	}
}

// The data stage commits a verdict for each task; the steps and the demonstrations draw kept tasks alone.
func TestDataIsPrepared(t *testing.T) {
	w, recipe := dataBench(t)
	extra := filepath.Join(t.TempDir(), "extra.jsonl")
	require.NoError(t, os.WriteFile(extra, []byte(`{"question": "Apples are in basket 4", "answer": 9}`), 0o600))
	section := "{deduplicate: true, integer_answers: true, decontaminate: {against: [" + extra + "], ngram: 5}}"
	_, err := w.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: recipe(section)})
	require.NoError(t, err)
	m, ref, found, err := w.record.Lookup(t.Context(), schema.AtInit("r", schema.StageData))
	require.NoError(t, err)
	require.True(t, found)
	require.NotEmpty(t, m.Note["against_0_sha256"])
	rows := taskRowsOf(t, w, m)
	require.Len(t, rows, 9)
	kept, dropped := map[string]bool{}, map[int32]string{}
	for _, r := range rows {
		kept[r.TaskID] = r.Kept
		if !r.Kept {
			dropped[r.Place] = r.Reason
		}
	}
	require.Equal(t, map[int32]string{4: "contaminated", 6: "duplicate", 7: "not_integer", 8: "contaminated"}, dropped)
	drawn := stepRows[schema.PromptRow](t, w.store, "r", 1, schema.StagePrompts)
	require.NotEmpty(t, drawn)
	for _, p := range drawn {
		require.True(t, kept[p.ProblemID], p.ProblemID)
	}
	prompts, _, _, err := w.record.Lookup(t.Context(), schema.At("r", 1, schema.StagePrompts))
	require.NoError(t, err)
	require.Contains(t, prompts.Inputs, ref)
	noFaults(t, w)

	// Another run's record decides: every task that it sampled has a pass rate of 0.3 or more.
	_, err = w.train(t, workflows.TrainRunInput{Run: "s",
		RecipeYAML: recipe("{hard: {run: r, samples: 2, below: 0.01}}")})
	require.NoError(t, err)
	m, _, _, err = w.record.Lookup(t.Context(), schema.AtInit("s", schema.StageData))
	require.NoError(t, err)
	require.Equal(t, []string{"r", "1"}, []string{m.Note["hard_run"], m.Note["hard_steps"]})
	verified, err := verify.Run(t.Context(), w.store, "s")
	require.NoError(t, err)
	require.Empty(t, verified.Faults, "its inputs are in another run")
	solved := map[string]bool{}
	for _, r := range taskRowsOf(t, w, m) {
		if r.Reason == "solved" {
			solved[r.TaskID] = true
			require.Equal(t, int32(12), *r.Samples)
		}
	}
	asked := map[string]bool{}
	for _, p := range drawn {
		asked[p.ProblemID] = true
	}
	require.Equal(t, asked, solved)

	at := 0
	for section, want := range map[string]string{
		"{integer_answers: true, decontaminate: {against: [" + extra + "], ngram: 2}}": "the filters drop all of the 9",
		"{hard: {run: nothing}}":                       "data.hard.run: run nothing has finished no step",
		"{hard: {run: z}}":                             "data.hard.run: z is this run",
		"{decontaminate: {against: [/nowhere.jsonl]}}": "data.decontaminate.against: stat /nowhere.jsonl",
		"{}":                              "names no filter",
		"{decontaminate: {against: [a]}}": "must hold absolute paths",
	} {
		at++
		run := fmt.Sprintf("z%d", at)
		if strings.Contains(section, "run: z") {
			run = "z"
		}
		_, err = w.train(t, workflows.TrainRunInput{Run: run, RecipeYAML: recipe(section)})
		require.ErrorContains(t, err, want)
	}
}

func taskRowsOf(t *testing.T, w *bench, m schema.Manifest) (rows []schema.TaskRow) {
	t.Helper()
	for _, s := range m.ShardsOf(schema.Tasks) {
		data, err := w.record.ReadShard(t.Context(), s)
		require.NoError(t, err)
		some, err := schema.Decode[schema.TaskRow](data)
		require.NoError(t, err)
		rows = append(rows, some...)
	}
	return rows
}
