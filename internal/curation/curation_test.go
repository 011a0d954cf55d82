package curation

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/rl/resample"
)

const long = "A farmer has twelve cows and sells five of them on Monday."

func task(id, text, answer string) env.Task {
	return env.Task{ID: id, Text: text, Answer: answer, Level: 1}
}

func reasons(v []Verdict) (out []string) {
	for _, one := range v {
		out = append(out, one.Reason)
	}
	return out
}

func TestDuplicates(t *testing.T) {
	tasks := []env.Task{task("a", "What is 2 + 2?", "4"), task("b", "what IS  2 2", "4"), task("c", "What is 3?", "x"),
		task("d", "What is 3", "3")}
	got := Filters{Deduplicate: true}.Apply(tasks)
	require.Equal(t, []string{"", duplicate, "", duplicate}, reasons(got))
	require.Equal(t, "of task a", got[1].Detail)
	got = Filters{Deduplicate: true, IntegerAnswers: true}.Apply(tasks)
	require.Equal(t, []string{"", duplicate, notInteger, ""}, reasons(got), "a dropped task is no earlier task")
	require.Equal(t, []string{"", "", "", ""}, reasons(Filters{}.Apply(tasks)))
}

func TestIntegers(t *testing.T) {
	for answer, want := range map[string]bool{"4": true, " -12 ": true, "+3": true, "−7": true, "1,234,567": true,
		"12,34": false, "1234,567": false, "": false, "-": false, "--3": false, "3.0": false, "1/2": false,
		`\frac{1}{2}`: false, "x": false, "1,": false, "٣": false} {
		require.Equal(t, want, integer(answer), answer)
	}
}

// Eight words in a row decide, whatever their case and punctuation; of a short problem all of its words do.
func TestContamination(t *testing.T) {
	g := newGrams(8, 100)
	require.NoError(t, g.Add("test set", long))
	require.NoError(t, g.Add("other set", "What is seven times six?"))
	tasks := []env.Task{
		task("a", "Yesterday: a FARMER has twelve cows, and sells five of them!", "7"), // nine words in common
		task("b", "A farmer has twelve cows and sells six of them on Monday.", "6"),    // seven at most
		task("c", "what is seven times six", "42"),
		task("d", "What is seven times sixty?", "420"),
		task("e", "...", "1"),
	}
	got := Filters{Evaluation: g}.Apply(tasks)
	require.Equal(t, []string{contaminated, "", contaminated, "", ""}, reasons(got))
	require.Equal(t, `"a farmer has twelve cows and sells five" is in test set`, got[0].Detail)
	require.Equal(t, `"what is seven times six" is in other set`, got[2].Detail)
	require.ErrorContains(t, newGrams(2, 3).Add("x", "a b c d e"), "more than 3 different 2-grams")
}

func TestHardProblems(t *testing.T) {
	tasks := []env.Task{task("solved", "a", "1"), task("half", "b", "1"), task("seldom", "c", "1"),
		task("new", "d", "1")}
	f := Filters{MinSamples: 4, Below: 1, Outcomes: prompts.Outcomes{
		"solved": resample.Evaluation{Samples: 4, Correct: 4}, "half": {Samples: 4, Correct: 2},
		"seldom": {Samples: 3, Correct: 3}}}
	got := f.Apply(tasks)
	require.Equal(t, []string{solved, "", "", ""}, reasons(got))
	require.Equal(t, Verdict{Reason: solved, Detail: "4 of 4 samples", Samples: 4, Correct: 4}, got[0])
	require.Equal(t, Verdict{Samples: 4, Correct: 2}, got[1])
	f.Below = 0.5
	require.Equal(t, []string{solved, solved, "", ""}, reasons(f.Apply(tasks)))
}

type nowhere struct{ env.Environment }

func (nowhere) Task(context.Context, env.Draw) (env.Task, error) {
	return env.Task{ID: "held out"}, nil
}

// Each kept task is drawn once before any repeats, and the held-out tasks are the environment's.
func TestWorldAndTeacher(t *testing.T) {
	kept := make([]env.Task, 6)
	for i := range kept {
		kept[i] = task(strconv.Itoa(i), "q", "1")
	}
	w := NewWorld(nowhere{}, kept)
	seen := map[string]int{}
	for i := range 12 {
		got, err := w.Task(t.Context(), env.Draw{Split: env.Train, Seed: 3, Step: 1 + i/4, Index: i % 4, PerStep: 4})
		require.NoError(t, err)
		seen[got.ID]++
	}
	require.Len(t, seen, 6)
	for id, n := range seen {
		require.Equal(t, 2, n, id)
	}
	got, err := w.Task(t.Context(), env.Draw{Split: env.HeldOut})
	require.NoError(t, err)
	require.Equal(t, "held out", got.ID)
	teacher := Teacher{Kept: kept[:2]}
	for range 20 {
		got, err := teacher.Draw(rand.New(rand.NewPCG(1, 2)), env.Lesson{})
		require.NoError(t, err)
		require.Contains(t, []string{"0", "1"}, got.ID)
	}
	require.True(t, teacher.Right(kept[0], "1"))
	require.False(t, teacher.Right(kept[0], "2"))
}
