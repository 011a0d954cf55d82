package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A preset sets only what differs from its bases. Shared settings are written once.
func TestPresetsAreShort(t *testing.T) {
	lines := 0
	for _, name := range append(Presets(), bases()...) {
		text, ok := embedded(name)
		require.True(t, ok, name)
		lines += strings.Count(string(text), "\n")
	}
	require.Less(t, lines, 900)
}

// At least one recipe extends every base, and no base can run.
func TestBasesAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, name := range slices.Concat(Builtin(), Presets(), bases()) {
		for _, base := range extendedBy(name) {
			used[base] = true
		}
	}
	for _, base := range bases() {
		require.True(t, used[base], "no recipe extends %s", base)
	}
	_, err := Resolve("presets/bases/sapo", "", nil, nil, nil)
	require.EqualError(t, err, "recipe presets/bases/sapo: is a part of recipes; a recipe names it as extends")
	files, err := os.ReadDir(filepath.Join("presets", "bases"))
	require.NoError(t, err)
	require.Len(t, bases(), len(files))
}

// A preset's comment includes the items of the files that it extends.
func TestCommentsAreInherited(t *testing.T) {
	require.Equal(t, `SAMPO: GSPO's ratio, GiGPO's advantage and dynamic sampling, on webshop.
- A turn's invalid action costs that turn's row, and groups' statistics run over rows, without
  random duplicates (ARLA-2, ARLA-3).
- Source: ARLArena Table 1 and Table S1.
- Bounds are the released scripts', rows weigh alike (ARLA-1, ARLA-8), the advantage is
  mean_std_norm (ARLA-15), there is no sequence mask (ARLA-13).`, Comment("presets/sampo-webshop"))
	require.Contains(t, Comment("presets/spear-sokoban"),
		"- Source: SPEAR Table 8 and Algorithm 1.\n- Training samples at")
	require.Contains(t, Comment("presets/spear-sokoban"), "- The buffer is in the paper's order")
	require.NotContains(t, Comment("presets/spear-sokoban"), "§4.3")
	require.NotContains(t, Comment("presets/ppo"), "Trains a small tool-using policy")
	for _, name := range Presets() {
		require.Contains(t, Comment(name), sourceItem, name)
	}
}

// The study of staleness changes the rollout batch alone: updates have equally many rows, and no rollout runs ahead.
func TestPresetsOfTheStalenessStudy(t *testing.T) {
	for task, prompts := range map[string][]int{"tir-math": {128, 512, 1024}, "alfworld": {8, 16, 32}} {
		base := resolved(t, "presets/grpo-"+task).Recipe
		for i, degree := range []string{"low", "medium", "high"} {
			r := resolved(t, fmt.Sprintf("presets/staleness-%s-%s", degree, task)).Recipe
			require.Equal(t, prompts[i], r.Rollout.Prompts)
			require.Equal(t, base.Optimizer, r.Optimizer)
			require.Positive(t, r.MinibatchRows())
			require.Zero(t, r.Staleness())
			r.Rollout.Prompts, r.Name, r.Description = base.Rollout.Prompts, base.Name, base.Description
			require.Equal(t, base, r, "nothing else differs")
		}
	}
}
