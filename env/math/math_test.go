package math

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/internal/testing/realdata"
)

// settings returns the declared settings with the given files.
func settings(train, heldOut string) env.Settings {
	return env.Settings{"train": train, "held_out": heldOut, "held_out_share": 0.3, "duplicates": "refuse",
		"max_mb": 16, "max_row_kb": 16}
}

// file writes n questions.
func file(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id": "q%d", "question": "What is %d + x?", "answer": "%d+x", "level": %d}`+"\n", i, i, i,
			1+i%3)
	}
	path := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

func openFile(t *testing.T, d env.Declaration, s env.Settings) env.Environment {
	t.Helper()
	require.NoError(t, d.Pin(s))
	require.Empty(t, d.Wants(s))
	e, err := d.Open(env.Options{Settings: s, MaxTurns: 3})
	require.NoError(t, err)
	return e
}

func TestConformance(t *testing.T) {
	path := file(t, 60)
	for _, d := range []env.Declaration{Plain, DAPO, TIR, RStar2, Chat, QA} {
		e := openFile(t, d, settings(path, ""))
		require.Equal(t, d.Name, e.Name())
		envtest.Run(t, e, envtest.Case{Tasks: 15, Turns: 2, Nonsense: []string{"", " \n"}})
	}
}

// An epoch asks every question once, and an answer ends its episode.
func TestEpisodes(t *testing.T) {
	e := openFile(t, Plain, settings(file(t, 40), ""))
	train := map[string]int{}
	for place := range 80 {
		task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 3, Step: 1 + place/8, Index: place % 8,
			PerStep: 8})
		require.NoError(t, err)
		train[task.ID]++
		state, seen, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		require.Equal(t, task.Text, seen.Parts[0].Text)
		for answer, right := range map[string]bool{" " + task.Answer: true, "7": false} {
			_, step, err := e.Step(t.Context(), state, answer)
			require.NoError(t, err)
			require.Equal(t, []bool{true, true, right}, []bool{step.Done, step.Valid, step.Success})
		}
	}
	for id, n := range train {
		require.LessOrEqual(t, n, 80/len(train)+1, id)
	}
	require.Less(t, len(train), 40, "some questions are held out")
}

// Fields may have other names, which faults name.
func TestOtherNamesOfFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"problem": "1 + 1?", "solution": "So\n#### 2"}`+"\n"+
		`{"problem": "1 + 2?", "solution": "3", "question": "another"}`+"\n"), 0o600))
	s := settings(path, "")
	s["columns"] = `{"question": "problem", "answer": "solution"}`
	e := openFile(t, Plain, s)
	golds := map[string]string{}
	for i := range 2 {
		task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Step: 1, Index: i, PerStep: 2})
		require.NoError(t, err)
		golds[task.Text] = task.Answer
	}
	require.Subset(t, map[string]string{"1 + 1?": "2", "1 + 2?": "3"}, golds)
	for columns, want := range map[string]string{
		`{"question": "problem", "answer": "gold"}`: "f.jsonl:1: answer (gold) is missing or blank; the row " +
			"has problem, solution",
		`{"question": "problem", "solution": "x"}`: "columns.solution: there is no such field; the fields are " +
			"question, answer, id, level",
		`{"question": "problem | upper"}`: `columns.question: "problem | upper" has an unknown function ` +
			`"upper"; there are`,
		`[]`: `columns: must be a mapping of texts, got "[]"`,
	} {
		s["columns"] = columns
		require.ErrorContains(t, Plain.Pin(s), want)
	}
}

// Rows of public sets become questions, without a mapping.
func TestShapes(t *testing.T) {
	const asked = `[{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]`
	for row, want := range map[string]string{
		`{"data_source": "d", "prompt": ` + asked + `, "reward_model": {"style": "rule", "ground_truth": "7"}}`: "7",
		`{"id": 60, "problem": "q", "solution": "s", "answer": 7, "url": "u", "year": "2024"}`:                  "7",
		`{"problem": "q", "expected_answer": "x+1", "generated_solution": "g"}`:                                 "x+1",
		`{"problem": "q", "solution": "\\boxed{1}", "level": "Level 5"}`:                                        "1",
		`{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "7"}]}`:               "7",
		`{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "7"}]}`:                   "7",
		`{"prompt": "q", "completion": "7"}`:                                                                    "7",
		`{"question": "q", "answer": "5 + 2\n#### 7"}`:                                                          "7",
		`{"question": "q", "answer": "Oslo", "level": "hard", "supporting_facts": {"title": []}}`:               "Oslo",
	} {
		path := filepath.Join(t.TempDir(), "f.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(row), 0o600))
		s := settings(path, "")
		s["held_out_share"] = 0
		task := envtest.Take(t, openFile(t, Plain, s), env.Train, 1, 1)[0]
		require.Equal(t, []string{"q", want}, []string{task.Text, task.Answer}, row)
		if strings.Contains(row, "Level 5") {
			require.Equal(t, 5, task.Level)
		}
	}
	for row, want := range map[string][]string{
		`{"question": "q", "golden_answers": ["x", "b"]}`:                                   {"x", "b"},
		`{"question": "q", "answer": {"value": "x", "aliases": ["x", "b", "x"]}}`:           {"x", "b"},
		`{"question": "q", "answer": ["x"]}`:                                                {"x"},
		`{"prompt": ` + asked + `, "reward_model": {"ground_truth": {"target": ["x", 2]}}}`: {"x", "2"},
		`{"question": "q", "answer": "the x"}`:                                              {"the x"},
	} {
		path := filepath.Join(t.TempDir(), "f.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(row), 0o600))
		s := settings(path, "")
		s["held_out_share"] = 0
		e := openFile(t, QA, s)
		task := envtest.Take(t, e, env.Train, 1, 1)[0]
		require.Equal(t, want, env.SplitGolds(task.Answer), row)
		state, _, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		_, step, err := e.Step(t.Context(), state, " The X! ")
		require.NoError(t, err)
		require.True(t, step.Success, "the words of a gold")
	}
}

// A file with golds of two kinds is refused at the row where the kind changes.
func TestAMixedColumn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"question": "a", "answer": "1"}`+"\n"+
		`{"question": "b", "answer": ["1", "2"]}`), 0o600))
	require.ErrorContains(t, Plain.Pin(settings(path, "")),
		`f.jsonl:2: answer must be text or a number, got ["1","2"]`)
	require.NoError(t, QA.Pin(settings(path, "")))
	require.NoError(t, os.WriteFile(path, []byte(`{"question": "a", "answer": ["x | y", "z"]}`), 0o600))
	require.ErrorContains(t, QA.Pin(settings(path, "")), "f.jsonl:1: answer: a gold holds the characters that separate")
	require.NoError(t, os.WriteFile(path, []byte(`{"question": "a", "answer": "?!"}`), 0o600))
	require.ErrorContains(t, QA.Pin(settings(path, "")), "f.jsonl:1: answer has no word to compare answers with")
}

func TestWithoutAFile(t *testing.T) {
	s := settings("", "")
	delete(s, "held_out")
	require.NoError(t, DAPO.Pin(s))
	require.Contains(t, DAPO.Wants(s), "train: names no file of questions")
	e, err := DAPO.Open(env.Options{Settings: s, MaxTurns: 3})
	require.NoError(t, err, "a preset is valid")
	_, err = e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.EqualError(t, err, "draw a question: environment.settings.train: names no file of questions")
}

func TestGolds(t *testing.T) {
	for answer, want := range map[string]string{
		"72": "72", ` \frac{1}{2} `: `\frac{1}{2}`, "48/2 = 24\n#### 72": "72", "#### 70,000\n": "70,000",
		"a #### b": "a #### b", "x\n#### 1\n#### 2": "2", "x\n####": "", "x\n####   \n": "",
	} {
		require.Equal(t, want, gold(answer), "%q", answer)
	}
	row := func(more string) string { return `{"question": "a", "answer": "1"}` + "\n" + more }
	for text, want := range map[string]string{
		row(`{"question": "b", "answer": "so\n#### "}`): ":2: answer: nothing is after ####",
		row(`{"question": "b", "answer": "1", "level": 0}`): `:2: level must be a whole number ` +
			`from 1 to 1000, got "0"`,
		row(`{"question": "b", "answer": "1", "level": "hard"}`): `:2: level must be a whole number ` +
			`from 1 to 1000, got "hard"`,
		row(`{"question": "b", "answer": null, "level": "hard"}`): ":2: answer is missing or blank",
		row(`{"question": "a", "answer": "2", "id": "another"}`):  ":2: the same task is in ",
		row(`{"question": "` + strings.Repeat("b", 1<<14) + `"}`): ":2: the row has more than 16 KiB",
	} {
		path := filepath.Join(t.TempDir(), "f.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		err := Plain.Pin(settings(path, ""))
		require.ErrorContains(t, err, "train: "+path+want)
		var fault *dataset.Fault
		require.ErrorAs(t, err, &fault)
	}
}

// The teacher prints the gold where programs run, and answers with it.
func TestDemonstrations(t *testing.T) {
	e := openFile(t, Plain, settings(file(t, 40), ""))
	teacher := e.(env.Teacher)
	heldOut := map[string]bool{}
	for _, task := range envtest.Take(t, e, env.HeldOut, 1, 40) {
		heldOut[task.ID] = true
	}
	for i := range uint64(20) {
		rng := seed.Rand("test", i)
		task, err := teacher.Draw(rng, env.Lesson{})
		require.NoError(t, err)
		require.False(t, heldOut[task.ID], "a held-out question is demonstrated")
		var moves []env.Move
		require.NoError(t, teacher.Demonstrate(t.Context(), rng, task, env.Lesson{},
			func(m env.Move) (env.Shown, error) {
				moves = append(moves, m)
				return env.Shown{}, nil
			}))
		require.Equal(t, []env.Move{{Code: `print("` + task.Answer + `")`}, {Answer: task.Answer}}, moves)
	}
}

// All of GSM8K's questions load, each with a whole number as its gold.
func TestGSM8K(t *testing.T) {
	train, err := filepath.Abs(realdata.Path(t, "gsm8k", "train.jsonl"))
	require.NoError(t, err)
	s := settings(train, filepath.Join(filepath.Dir(train), "test.jsonl"))
	e := openFile(t, RStar2, s)
	require.Len(t, s["held_out_sha256"], 64)
	number := regexp.MustCompile(`^-?[0-9][0-9,]*(\.[0-9]+)?$`)
	seen := map[string]bool{}
	for split, n := range map[env.Split]int{env.Train: 7473, env.HeldOut: 1319} {
		for _, task := range envtest.Take(t, e, split, 1, n) {
			require.Regexp(t, number, task.Answer, task.Text)
			require.False(t, seen[task.ID], task.Text)
			seen[task.ID] = true
		}
	}
	require.Len(t, seen, 7473+1319)
}
