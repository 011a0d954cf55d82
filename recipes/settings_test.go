package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
)

// An environment has the settings that it declares. Recipe, schema and record use the declared defaults, ranges and
// names.
func TestSettingsOfAnEnvironment(t *testing.T) {
	r := resolved(t, "sokoban").Recipe
	want := env.Settings{"size": 6, "boxes": 1, "min_moves": 2, "max_moves": 8, "pays": "gym", "open": true,
		"list": true}
	require.Equal(t, want, r.Environment.Settings)
	world, err := r.Open()
	require.NoError(t, err)
	require.Equal(t, "sokoban", world.Name())
	p, err := r.Protocol()
	require.NoError(t, err)
	require.Equal(t, "think_action", p.Spec().Name)
	require.True(t, r.Whole())
	again, err := ParseCommitted("again", resolved(t, "sokoban").JSON, []string{"environment.settings.pays=goal"})
	require.NoError(t, err)
	want["pays"] = "goal"
	require.Equal(t, want, again.Environment.Settings)
	s := compiled(t)
	text, ok := Source("sokoban")
	require.True(t, ok)
	require.NoError(t, s.Validate(instance(t, text)))
	for set, fault := range map[string]string{
		"environment.settings.sise=5":     "no such field; did you mean environment.settings.size?",
		"environment.settings.size=11":    "must be ≤ 10, got 11",
		"environment.settings.size=large": `must be a whole number, got "large"`,
		"environment.settings.pays=gold":  `must be one of gym, goal, got "gold"`,
		"rollout.history_tokens=50":       "each context of rollout.protocol think_action is a whole prompt",
		"environment.settings=5":          "must be a mapping, got 5",
		"environment.settings.max_moves=11": "open environment sokoban: check sokoban settings: max moves must be 2 " +
			"to 10, got 11",
		"environment.name=calc":   "has no place in a recipe of calc; it belongs to alfworld, webshop, sokoban",
		"rollout.protocol=rstar2": "rstar2 has no actions, which sokoban is played by",
		"layout=trajectory":       "must be turns with environment sokoban, for each turn has a whole prompt of",
		"reward.name=rstar2_outcome": "must be one of arlarena, spear, spear_agent, python in a recipe of sokoban, " +
			"got rstar2_outcome",
		"warm_start.levels=[2]": "has no place in a recipe of sokoban; it belongs to calc",
		"warm_start.noise=2":    "must be ≤ 1, got 2",
		"sandbox.cpu_seconds=1": "has no place in a recipe of sokoban; it belongs to calc",
	} {
		_, err := Resolve("sokoban", "", []string{set}, nil, nil)
		require.ErrorContains(t, err, fault, set)
	}
	_, err = Resolve("quickstart", "", []string{"rollout.protocol=think_action"}, nil, nil)
	require.ErrorContains(t, err, "think_action is a protocol of actions, and calc takes none")
	_, err = Resolve("quickstart", "", []string{"layout=turns", "advantage={name: gigpo, anchor: state}"}, nil, nil)
	require.ErrorContains(t, err, "state wants an interactive environment")
}
