package activities

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/schema"
)

// solvedBench is a lane of a run whose step 1 posed, by chance, the problems that are the first of step 2's
// stream; so many of its samples have solved each.
func solvedBench(t *testing.T, stage string, solved ...int) (b *laneBench, prompts, rewards schema.Ref) {
	t.Helper()
	b = laneWith(t, nil, nil, "schedule={stages: ["+stage+"]}")
	b.scope.Run, b.scope.Step = "s", 2
	loop, err := b.deps.loop(new(recipeOf(b)), 1)
	require.NoError(t, err)
	var rows []schema.PromptRow
	var outcomes []schema.RewardRow
	for g := range laneGroups {
		rows = append(rows, loop.PromptRow(1, g, problemOf(b, g)))
		for i := range laneSamples {
			outcomes = append(outcomes, schema.RewardRow{GroupID: schema.GroupID(1, g), TrajectoryID: schema.TrajectoryID(1, g, i), Success: i < solved[g], Verdict: "exact"})
		}
	}
	prompts = commitRows(b, schema.At("s", 1, wire.StagePrompts), rows)
	rewards = commitRows(b, schema.At("s", 1, wire.StageReward), outcomes, prompts)
	return b, prompts, rewards
}

// problemOf is at an index of step 2's stream.
func problemOf(b *laneBench, index int) env.Problem {
	recipe := recipeOf(b)
	shares, err := calc.ParseShares(recipe.Environment.LevelShares)
	require.NoError(b.t, err)
	return calc.Training(recipe.Seed, 2, index, shares)
}

func (b *laneBench) head(step int, refs ...schema.Ref) {
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
		index  [laneGroups]int // of step 2's prompts in its stream
		passed string
	}{
		"one is solved":     {"{from_step: 2, problems: unsolved, samples: 6}", []int{5, 6, 0, 5}, [laneGroups]int{0, 5, 2, 3}, "1"},
		"all are":           {"{from_step: 1, problems: unsolved, samples: 2}", []int{6, 6, 6, 6}, [laneGroups]int{4, 5, 6, 7}, "4"},
		"too few samples":   {"{from_step: 2, problems: unsolved, samples: 7}", []int{6, 6, 6, 6}, [laneGroups]int{0, 1, 2, 3}, ""},
		"a later stage":     {"{from_step: 3, problems: unsolved, samples: 6}", []int{6, 6, 6, 6}, [laneGroups]int{0, 1, 2, 3}, ""},
		"the problems stay": {"{from_step: 2, samples: 6}", []int{6, 6, 6, 6}, [laneGroups]int{0, 1, 2, 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, prompts, rewards := solvedBench(t, c.stage, c.solved...)
			b.head(1, prompts, rewards)
			out, err := do(b, SelectPrompts{b.deps}.Execute, wire.PromptsInput{Scope: b.scope})
			require.NoError(t, err)
			rows := rowsAt[schema.PromptRow](b, out.Manifest)
			require.Len(t, rows, laneGroups)
			for g, row := range rows {
				require.Equal(t, schema.GroupID(2, g), row.GroupID)
				require.Equal(t, problemOf(b, c.index[g]).ID, row.ProblemID, g)
			}
			m, err := b.deps.Record.Read(t.Context(), out.Manifest)
			require.NoError(t, err)
			require.Equal(t, c.passed, m.Note["passed_over"])
			if recipe := recipeOf(b); recipe.Unsolved(2) > 0 {
				require.Equal(t, []schema.Ref{b.scope.Config, prompts, rewards}, m.Inputs)
			} else {
				require.Equal(t, []schema.Ref{b.scope.Config}, m.Inputs)
			}
		})
	}
}

func TestUnsolvedProblemsWantEveryEarlierStep(t *testing.T) {
	b, prompts, _ := solvedBench(t, "{from_step: 2, problems: unsolved}", 0, 0, 0, 0)
	_, err := do(b, SelectPrompts{b.deps}.Execute, wire.PromptsInput{Scope: b.scope})
	require.ErrorContains(t, err, "step 1 of run s has committed no rewards, by which step 2 tells what is solved")
	b.head(1, prompts)
	_, err = do(b, SelectPrompts{b.deps}.Execute, wire.PromptsInput{Scope: b.scope})
	require.ErrorContains(t, err, "has committed no rewards")
}

func TestTooFewUnsolvedProblems(t *testing.T) {
	drawn := 0
	draw := func(index int) env.Problem {
		drawn++
		return env.Problem{ID: strconv.Itoa(index % 3)}
	}
	solved := map[string]bool{"0": true, "1": true, "2": true}
	_, _, err := unsolvedProblem(7, 8, 1, solved, draw)
	require.ErrorContains(t, err, "leaves too few for step 7: all of 1000 problems drawn for one prompt are solved (3 are in all)")
	require.Equal(t, drawsOfPrompt, drawn)
	delete(solved, "0")
	p, passed, err := unsolvedProblem(7, 8, 1, solved, draw)
	require.NoError(t, err)
	require.Equal(t, "0", p.ID, "1, then 9")
	require.Equal(t, 1, passed)
}
