package prompts

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/resample"
)

func TestTooFewUnsolvedProblems(t *testing.T) {
	drawn := 0
	draw := func(index int) (env.Task, error) {
		drawn++
		return env.Task{ID: strconv.Itoa(index % 3)}, nil
	}
	solved := map[string]bool{"0": true, "1": true, "2": true}
	_, _, err := unsolvedTask(7, 8, 1, solved, draw)
	require.ErrorContains(t, err,
		"leaves too few for step 7: all of 1000 problems drawn for one prompt are solved (3 are in all)")
	require.Equal(t, drawsOfPrompt, drawn)
	delete(solved, "0")
	p, passed, err := unsolvedTask(7, 8, 1, solved, draw)
	require.NoError(t, err)
	require.Equal(t, "0", p.ID, "1, then 9")
	require.Equal(t, 1, passed)
}

// numbered is an environment whose tasks are numbered by their index, modulo of.
type numbered struct {
	env.Environment
	of int
}

func (n numbered) Task(_ context.Context, d env.Draw) (env.Task, error) {
	return env.Task{ID: strconv.Itoa(d.Index % n.of)}, nil
}

func ids(tasks []env.Task) (out []string) {
	for _, t := range tasks {
		out = append(out, t.ID)
	}
	return out
}

func TestDrawSkipsWhatIsSolved(t *testing.T) {
	recipe := &recipes.Recipe{}
	dynamic := &resample.DynamicSampling{Tries: 3}
	recipe.Rollout.Prompts, recipe.Resample.Params = 2, choice.Params{"dynamic": dynamic}
	drawn, err := Draw(t.Context(), numbered{of: 100}, recipe, 4, 1, map[string]bool{"3": true, "9": true})
	require.NoError(t, err)
	require.Equal(t, []string{"2", "15"}, ids(drawn.Tasks), "indexes 3 and 9 are solved, and a step has 6")
	require.Equal(t, 2, drawn.Skipped)
	require.Equal(t, 3*6+2, drawn.First)
	dynamic.Refill = resample.RefillSame
	drawn, err = Draw(t.Context(), numbered{of: 100}, recipe, 4, 1, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"0", "1"}, ids(drawn.Tasks))
	require.Equal(t, 3*6, drawn.First)
}

func TestHeldOutTasksAreDistinct(t *testing.T) {
	recipe := &recipes.Recipe{}
	recipe.Evaluation.Problems = 3
	tasks, err := HeldOut(t.Context(), numbered{of: 3}, recipe)
	require.NoError(t, err)
	require.Equal(t, []string{"0", "1", "2"}, ids(tasks))
	tasks, err = HeldOut(t.Context(), numbered{of: 2}, recipe)
	require.NoError(t, err)
	require.Equal(t, []string{"0", "1"}, ids(tasks), "an evaluation takes all that there are")
}
