package smoke

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

var update = flag.Bool("update", false, "rewrite testdata")

func resolved(t *testing.T, name string, set ...string) *recipes.Resolved {
	t.Helper()
	r, err := recipes.Resolve(name, "", set, nil, nil)
	require.NoError(t, err, name)
	return r
}

// The recorded form of every built-in recipe and of its smoke recipe keeps the digest that it had when presets were
// written out in full. The list has one line for each recipe: name, digest, digest of the smoke recipe.
func TestDigestsOfBuiltinRecipes(t *testing.T) {
	var b strings.Builder
	for _, name := range append(recipes.Builtin(), recipes.Presets()...) {
		r := resolved(t, name)
		small := "-"
		if !r.Recipe.Environment.Imported() {
			small = resolved(t, name, OverridesOnCalc(&r.Recipe)...).Digest
		}
		fmt.Fprintf(&b, "%s %s %s\n", name, r.Digest, small)
	}
	golden.Check(t, "digests.txt", b.String(), *update)
}

// A smoke recipe plays in the preset's world, or runs calc where that has no small form, on the CPU engine with the
// preset's method. It leaves nothing open. The form on calc is the same method too.
func TestSmokeRecipes(t *testing.T) {
	for _, name := range recipes.Presets() {
		of := resolved(t, name).Recipe
		small := resolved(t, name, Overrides(&of)...).Recipe
		world := recipes.Calc
		if worldOf(&of) != recipes.Calc {
			world = of.Environment.Name
		}
		require.Equal(t, world, small.Environment.Name, name)
		checkSmoke(t, name, of, small, Notes(&of))
		onCalc := resolved(t, name, OverridesOnCalc(&of)...).Recipe
		if world == "sokoban" {
			require.Equal(t, small, onCalc, name)
		} else {
			require.Equal(t, recipes.Calc, onCalc.Environment.Name, name)
		}
		checkSmoke(t, name, of, onCalc, NotesOnCalc(&of))
	}
	aepo := resolved(t, "presets/aepo").Recipe
	require.Contains(t, NotesOnCalc(&aepo),
		"samples 4 flat rollouts for each prompt in the place of a tree (rollout.tree)")
	require.Empty(t, Notes(&aepo))
	tree := resolved(t, "presets/aepo", Overrides(&aepo)...).Recipe.Rollout.Tree
	want := *aepo.Rollout.Tree
	want.Roots = 2
	require.Equal(t, &want, tree)
	long := resolved(t, "presets/prs-long").Recipe
	require.Equal(t, []string{"judges by exact match (reward.judge)"}, Notes(&long))
	require.Equal(t, "exact", resolved(t, "presets/prs-long", Overrides(&long)...).Recipe.Reward.Judge)
	stages := resolved(t, "presets/rstar2").Recipe
	small := resolved(t, "presets/rstar2", Overrides(&stages)...).Recipe
	require.Equal(t, []schedule.Stage{
		{FromStep: 2, MaxTokens: 192, Problems: "same", Samples: 2},
		{FromStep: 3, Problems: "unsolved", Samples: 2, ResetOptimizer: true, RefreshReference: true},
	}, small.Schedule.Stages())
}

// A smoke recipe writes its demonstrations in the form of its preset.
func TestSmokeRecipesKeepTheForm(t *testing.T) {
	of := resolved(t, "presets/rstar2-sft").Recipe
	require.True(t, of.Forms())
	require.True(t, resolved(t, "presets/rstar2-sft", Overrides(&of)...).Recipe.Forms())
}

// checkSmoke checks that a smoke recipe is small and has the method of its preset.
func checkSmoke(t *testing.T, name string, of, small recipes.Recipe, notes []string) {
	t.Helper()
	require.Equal(t, 3, small.Steps, name)
	require.Equal(t, 30, small.Evaluation.Problems, name)
	require.Empty(t, small.Planned(), name)
	same, got := of.Method(), small.Method()
	require.Equal(t, of.Rollout.History > 0, small.Rollout.History > 0, name)
	require.Equal(t, same.Layout, got.Layout, name)
	require.Equal(t, same.Advantage, got.Advantage, name)
	require.Equal(t, same.Loss, got.Loss, name)
	require.Equal(t, same.Filters, got.Filters, name)
	require.Equal(t, same.Replay != nil, got.Replay != nil, name)
	require.Equal(t, same.Resample.VSPO(), got.Resample.VSPO(), name)
	require.Equal(t, same.Resample.LowVariance(), got.Resample.LowVariance(), name)
	require.Equal(t, same.Resample.Dynamic() != nil, got.Resample.Dynamic() != nil, name)
	require.Equal(t, same.Resample.RoC() != nil, got.Resample.RoC() != nil, name)
	if same.Reward.Name != got.Reward.Name {
		require.Contains(t, strings.Join(notes, "\n"), "scores by "+got.Reward.Name+", for "+same.Reward.Name, name)
	}
}
