package activities_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// A policy of a mix is measured on one part alone, and two runs of a mix are compared part by part.
func TestPartsOfAMix(t *testing.T) {
	ctx := t.Context()
	b := newBench(t, mem.New())
	recipe := fmt.Sprintf(mixRecipe, worldParts, "interleaved", 4, worldMethod)
	for _, run := range []string{"r", "s"} {
		_, err := b.train(t, workflows.TrainRunInput{Run: run, RecipeYAML: recipe, Set: []string{"steps=1"}})
		require.NoError(t, err)
	}
	c, err := compare.Read(ctx, analysis.New(b.store), []string{"r", "s"})
	require.NoError(t, err)
	for _, e := range c.Evaluations {
		require.Len(t, e.Against[0].ByPart, 2)
		for _, d := range e.Against[0].ByPart {
			require.Equal(t, 2, d.Problems)
			require.Zero(t, d.Mean, "the same run under another name")
		}
	}
	var text strings.Builder
	require.NoError(t, c.Write(&text))
	require.Regexp(t, `\n  sokoban +2  A → B`, text.String())
	require.Regexp(t, `\n  alfworld +2  A → B`, text.String())

	policy, _ := b.policyOf(t, "r", 1)
	var alone string // as runs.Evaluation makes it of a part
	for line := range strings.Lines(recipe) {
		if !strings.HasPrefix(line, "sandbox:") {
			alone += line
		}
	}
	alone = strings.NewReplacer("{name: mix, parts: ["+worldParts+"]}",
		"{name: sokoban, settings: {size: 5, max_moves: 4}}", "steps: 2\n", "steps: 1\n",
		"problems: 4", "problems: 3").Replace(alone)
	out, err := b.evaluate(workflows.EvaluateInput{Run: "e", RecipeYAML: alone, RecipeFile: "r", Policy: policy})
	require.NoError(t, err)
	require.Equal(t, 3, out.Summary.N)
	require.Empty(t, out.Summary.ByPart)
	verified, err := verify.Run(ctx, b.store, "e")
	require.NoError(t, err)
	require.Empty(t, verified.Faults)
}
