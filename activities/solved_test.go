package activities

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/data"
	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/schema"
)

// solvedBench is a step of a run whose step 1 happened to use the first problems of step 2's stream; the given
// numbers of its samples have solved them.
func solvedBench(t *testing.T, stage string, solved ...int) (b *stepBench, prompts, rewards schema.Ref) {
	t.Helper()
	b = stepWith(t, nil, nil, "schedule={stages: ["+stage+"]}")
	b.scope.Run, b.scope.Step = "s", 2
	loop, err := b.deps.Recipes.Loop(new(recipeOf(b)), resolver.Sampling{Temperature: 1})
	require.NoError(t, err)
	var rows []schema.PromptRow
	var outcomes []schema.RewardRow
	for g := range benchGroups {
		row, err := loop.PromptRow(t.Context(), 1, g, problemOf(b, g))
		require.NoError(t, err)
		rows = append(rows, row)
		for i := range benchSamples {
			outcomes = append(outcomes, schema.RewardRow{GroupID: schema.GroupID(1, g),
				TrajectoryID: schema.TrajectoryID(1, g, i), Success: i < solved[g], Verdict: "exact"})
		}
	}
	prompts = commitRows(b, schema.At("s", 1, schema.StagePrompts), rows)
	rewards = commitRows(b, schema.At("s", 1, schema.StageReward), outcomes, prompts)
	return b, prompts, rewards
}

// problemOf returns the problem at an index of step 2's stream.
func problemOf(b *stepBench, index int) env.Task {
	recipe := recipeOf(b)
	shares, err := calc.ParseShares(recipe.Environment.LevelShares)
	require.NoError(b.t, err)
	return calc.Training(recipe.Seed, 2, index, shares)
}

func (b *stepBench) head(step int, refs ...schema.Ref) {
	b.t.Helper()
	head, err := schema.NewHead(b.scope.Run, strconv.Itoa(step), refs...)
	require.NoError(b.t, err)
	_, _, _, err = b.deps.Record.CommitHead(b.t.Context(), head)
	require.NoError(b.t, err)
}

func TestUnsolvedProblems(t *testing.T) {
	for name, c := range map[string]struct {
		stage  string
		solved []int
		index  [benchGroups]int // indexes of step 2's prompts in its stream
		passed string
	}{
		"one is solved": {"{from_step: 2, problems: unsolved, samples: 6}", []int{5, 6, 0, 5},
			[benchGroups]int{0, 5, 2, 3}, "1"},
		"all are": {"{from_step: 1, problems: unsolved, samples: 2}", []int{6, 6, 6, 6},
			[benchGroups]int{4, 5, 6, 7}, "4"},
		"too few samples": {"{from_step: 2, problems: unsolved, samples: 7}", []int{6, 6, 6, 6},
			[benchGroups]int{0, 1, 2, 3}, ""},
		"a later stage": {"{from_step: 3, problems: unsolved, samples: 6}", []int{6, 6, 6, 6},
			[benchGroups]int{0, 1, 2, 3}, ""},
		"the problems stay": {"{from_step: 2, samples: 6}", []int{6, 6, 6, 6}, [benchGroups]int{0, 1, 2, 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, prompts, rewards := solvedBench(t, c.stage, c.solved...)
			b.head(1, prompts, rewards)
			out, err := do(b, data.NewSelectPrompts(b.deps).Execute, api.PromptsInput{Scope: b.scope})
			require.NoError(t, err)
			rows := rowsAt[schema.PromptRow](b, out.Manifest)
			require.Len(t, rows, benchGroups)
			for g, row := range rows {
				require.Equal(t, schema.GroupID(2, g), row.GroupID)
				require.Equal(t, problemOf(b, c.index[g]).ID, row.ProblemID, g)
			}
			m, err := b.deps.Record.Read(t.Context(), out.Manifest)
			require.NoError(t, err)
			require.Equal(t, c.passed, m.Note["passed_over"])
			if recipe := recipeOf(b); recipe.Schedule.Unsolved(2) > 0 {
				require.Equal(t, []schema.Ref{b.scope.Config, prompts, rewards}, m.Inputs)
			} else {
				require.Equal(t, []schema.Ref{b.scope.Config}, m.Inputs)
			}
		})
	}
}

func TestUnsolvedProblemsWantEveryEarlierStep(t *testing.T) {
	b, prompts, _ := solvedBench(t, "{from_step: 2, problems: unsolved}", 0, 0, 0, 0)
	_, err := do(b, data.NewSelectPrompts(b.deps).Execute, api.PromptsInput{Scope: b.scope})
	require.ErrorContains(t, err, "step 1 of run s has committed no rewards, by which step 2 tells what is solved")
	b.head(1, prompts)
	_, err = do(b, data.NewSelectPrompts(b.deps).Execute, api.PromptsInput{Scope: b.scope})
	require.ErrorContains(t, err, "has committed no rewards")
}

// A worker reads each step of a run once: a later step costs no more than an early one. Another worker reads all
// steps and gets the same result, and so does a worker that runs an earlier step again.
func TestSolvedProblemsReadEachStepOnce(t *testing.T) {
	b, _, _ := solvedBench(t, "{from_step: 2, problems: unsolved, samples: 2}", 0, 0, 0, 0)
	objects := faults.New(b.deps.Store)
	worker := func() data.SelectPrompts {
		return data.NewSelectPrompts(&stage.Worker{Records: record.Records{Store: objects,
			Record: commit.New(objects)}})
	}
	one := worker()
	calls, last := map[int]int{}, map[string]bool{}
	of := func(a data.SelectPrompts, step int) (map[string]bool, []schema.Ref) {
		w := &stage.Draft{Progress: &stage.Progress{}}
		solved, err := a.SolvedProblems(t.Context(), w, api.Scope{Run: "s", Step: step}, 2)
		require.NoError(t, err)
		return solved, w.Manifest.Inputs
	}
	var inputs []schema.Ref
	for step := 1; step <= 60; step++ {
		before := len(objects.Log())
		last, inputs = of(one, step)
		calls[step] = len(objects.Log()) - before
		require.Len(t, inputs, 2*(step-1))
		b.solvedStep(step, step%3 == 0)
	}
	require.Positive(t, calls[10])
	require.Equal(t, calls[10], calls[60])
	require.Len(t, last, 19, "the problem of every third step")
	again, same := of(worker(), 60)
	require.Equal(t, last, again)
	require.Equal(t, inputs, same)
	earlier, _ := of(one, 10)
	require.Len(t, earlier, 3)
}

// solvedStep commits a step with one problem of its own, whose two samples are both right or both wrong.
func (b *stepBench) solvedStep(step int, right bool) {
	prompts := schema.At("s", step, schema.StagePrompts)
	if step > 1 { // the bench has made those of step 1
		loop, err := b.deps.Recipes.Loop(new(recipeOf(b)), resolver.Sampling{Temperature: 1})
		require.NoError(b.t, err)
		problem := problemOf(b, 0)
		problem.ID = fmt.Sprint("p", step)
		rows := []schema.RewardRow{}
		for i := range 2 {
			rows = append(rows, schema.RewardRow{GroupID: schema.GroupID(step, 0),
				TrajectoryID: schema.TrajectoryID(step, 0, i), Success: right, Verdict: "exact"})
		}
		prompt, err := loop.PromptRow(b.t.Context(), step, 0, problem)
		require.NoError(b.t, err)
		made := commitRows(b, prompts, []schema.PromptRow{prompt})
		b.head(step, made, commitRows(b, schema.At("s", step, schema.StageReward), rows, made))
		return
	}
	_, p, _, err := b.deps.Record.Lookup(b.t.Context(), prompts)
	require.NoError(b.t, err)
	_, r, _, err := b.deps.Record.Lookup(b.t.Context(), schema.At("s", step, schema.StageReward))
	require.NoError(b.t, err)
	b.head(step, p, r)
}
