package environments

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// The setting release plays the engine in a folder: ARLArena's goals are held out, a purchase with score 1 pays 10, and
// buttons are admissible. The folder of the test holds what the wrapper uses of WebShop's release.
func TestWebShopsRelease(t *testing.T) {
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	d, _ := Named("webshop")
	folder, err := filepath.Abs("testdata/webshop")
	require.NoError(t, err)
	e, err := d.Open(env.Options{Settings: env.Settings{"release": folder}, MaxTurns: 3})
	require.NoError(t, err)
	require.Equal(t, "webshop", e.Name())
	first, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut})
	require.NoError(t, err)
	for _, c := range []struct {
		query          string
		reward, scored float64
	}{{"item 0", 10, 1}, {"item 1", 0, 0.5}} {
		state, seen, err := e.Reset(t.Context(), first)
		require.NoError(t, err)
		require.Equal(t, env.Seen("Instruction: buy item 0 [SEP] search"), seen)
		task, err := e.(env.Classifier).Classify(first, state)
		require.NoError(t, err)
		require.Equal(t, "beauty", task.Type)
		state, got, err := e.Step(t.Context(), state, "search["+c.query+"]")
		require.NoError(t, err)
		require.Equal(t, []string{"click[back to search]", "click[buy now]"}, got.Observation.Admissible)
		state, got, err = e.Step(t.Context(), state, "click[buy now]")
		require.NoError(t, err)
		require.True(t, got.Done)
		require.Equal(t, c.reward, got.Reward)
		require.Equal(t, c.reward > 0, got.Success)
		score, err := e.(env.Scorer).Score(state)
		require.NoError(t, err)
		require.Equal(t, c.scored, *score)
	}
	places := map[string]bool{}
	for i := range 12 {
		task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, Index: i, PerStep: 12})
		require.NoError(t, err)
		places[task.ID] = true
	}
	require.Len(t, places, 6, "goals after the first 500 are trained on")
	code, err := e.(env.Coded).Code(t.Context())
	require.NoError(t, err)
	require.Contains(t, code, "  web_agent_site/envs/web_agent_text_env.py\n")
	require.Contains(t, d.World(env.Settings{"release": folder}), "WebShop's release in "+folder)
	require.Contains(t, d.World(env.Settings{}), "a generated shop, which stands in for WebShop's products")
	require.Contains(t, d.Starts(env.Settings{"release": folder}), folder)
	require.Empty(t, d.Starts(env.Settings{}))
	require.NotEmpty(t, d.Undemonstrated(env.Settings{"release": folder}))

	for want, s := range map[string]env.Settings{
		"release: path: must be absolute":        {"release": "shop"},
		"release: products describes a generate": {"release": folder, "products": 100},
	} {
		_, err := d.Open(env.Options{Settings: s, MaxTurns: 3})
		require.ErrorContains(t, err, want)
	}
	empty, err := d.Open(env.Options{Settings: env.Settings{"release": t.TempDir()}, MaxTurns: 3})
	require.NoError(t, err)
	require.ErrorContains(t, empty.(env.Tried).Try(t.Context()), "No module named 'web_agent_site'")
}
