package preflight_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/recipes"
)

// opened resolves a recipe of mathematics with more sections, and opens its environment. Its file has n questions.
func opened(t *testing.T, n int, held, more string) (*recipes.Recipe, env.Environment) {
	t.Helper()
	var rows strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, "{\"question\": \"What is %d and %d?\", \"answer\": \"%d\"}\n", i, i, 2*i)
	}
	file := filepath.Join(t.TempDir(), "own.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(rows.String()), 0o600))
	return resolved(t, fmt.Sprintf("environment:\n  name: math\n  settings: {train: %s, %s}\n"+
		"reward: {name: rstar2_outcome}\n%s", file, held, more))
}

func resolved(t *testing.T, sections string) (*recipes.Recipe, env.Environment) {
	t.Helper()
	r, err := recipes.Resolve("own", "version: 1\nname: own\nseed: 1\nsteps: 2\nadvantage: {name: grpo}\n"+
		"loss: {name: ppo_clip}\noptimizer: {lr: 0.001}\nrollout: {prompts: 4, samples_per_prompt: 4}\n"+sections, nil,
		nil, nil)
	require.NoError(t, err)
	world, err := r.Recipe.Open()
	require.NoError(t, err)
	return &r.Recipe, world
}

// The sections of warm starts that clone golds, and nothing.
const (
	taught      = "warm_start: {optimizer: {lr: 0.001}}\n"
	noWarmStart = "warm_start: {steps: 0, optimizer: {lr: 0.001, warmup_steps: 0}}\n"
)

func refused(t *testing.T, err error, text string) {
	t.Helper()
	var bad badinput.Error
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, text)
}

// Each split has tasks, or the run is refused before anything is trained. An evaluation takes all that there are.
func TestEachSplitHasTasks(t *testing.T) {
	r, world := opened(t, 40, "held_out_share: 0.2", taught)
	notes, err := preflight.World(t.Context(), r, world, true)
	require.NoError(t, err)
	require.Len(t, notes, 2)
	require.Contains(t, notes[0], "the warm start clones the golds of the training questions")
	require.Regexp(t, `^evaluation.problems is 513, and the held-out split of math has \d+: an evaluation takes `+
		`all of them$`, notes[1])
	r, world = opened(t, 40, "held_out_share: 0.2", "evaluation: {problems: 2}\n"+noWarmStart)
	notes, err = preflight.World(t.Context(), r, world, true)
	require.NoError(t, err)
	require.Empty(t, notes)

	r, world = opened(t, 3, "held_out_share: 0", taught)
	_, err = preflight.World(t.Context(), r, world, true)
	refused(t, err, "environment: held-out tasks: draw a question: none of the 3 tasks is held out")
	r, world = opened(t, 3, "held_out_share: 0.9", taught)
	_, err = preflight.World(t.Context(), r, world, true)
	refused(t, err, "environment: training tasks: ")
	_, err = preflight.World(t.Context(), r, world, false)
	require.NoError(t, err, "an evaluation draws no training task")
}

// Filters that leave nothing are refused with the number of tasks that each drops.
func TestFiltersThatLeaveNothing(t *testing.T) {
	r, world := opened(t, 40, "held_out_share: 0.2", taught+"data: {decontaminate: {ngram: 2}}\n")
	err := preflight.Filters(t.Context(), r, world)
	refused(t, err, "data: the filters drop all of the ")
	require.Regexp(t, `training tasks of math: \d+ as contaminated$`, err.Error())
	r, world = opened(t, 40, "held_out_share: 0.2", taught+"data: {integer_answers: true}\n")
	require.NoError(t, preflight.Filters(t.Context(), r, world))
}

// away is a server that does not answer.
type away struct{ env.Environment }

func (away) Try(context.Context) error { return fmt.Errorf("connect: %w", remote.ErrLost) }

// Code that does not load and episodes that do not begin are refused. A server that is away is no fault of the recipe.
func TestEpisodesElsewhereAreTried(t *testing.T) {
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	folder := t.TempDir()
	for name, text := range map[string]string{
		"syntax": "def make(:\n", "raises": "def make():\n    raise RuntimeError('no level')\n",
		"resets": "class World:\n    def reset(self, seed=None):\n        raise ValueError('no seed')\n" +
			"\nmake = World\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+"_world.py"), []byte(text), 0o600))
	}
	for name, want := range map[string]string{"syntax": "SyntaxError", "raises": "no level", "resets": "no seed",
		"absent": "absent_world"} {
		r, world := resolved(t, fmt.Sprintf("environment:\n  name: python\n"+
			"  settings: {module: %s_world:make, path: %s}\n"+
			"reward: {name: arlarena}\nlayout: turns\n%s",
			name, folder, noWarmStart))
		_, err := preflight.World(t.Context(), r, world, true)
		refused(t, err, want)
		require.ErrorContains(t, err, "environment.settings: begin an episode of python")
	}
	r, world := opened(t, 40, "held_out_share: 0.2", taught)
	_, err := preflight.World(t.Context(), r, away{world}, true)
	require.ErrorIs(t, err, remote.ErrLost)
	var bad badinput.Error
	require.NotErrorAs(t, err, &bad)
}

// An action that an OpenEnv server's description of actions does not have is refused before anything is trained.
func TestAnActionThatAServerRefuses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/schema", r.URL.Path)
		fmt.Fprint(w, `{"action": {"properties": {"message": {}}, "required": ["message"], `+
			`"additionalProperties": false}}`)
	}))
	defer server.Close()
	r, world := resolved(t, fmt.Sprintf("environment:\n  name: openenv\n"+
		"  settings: {url: %q, action: '{\"text\": \"{action}\"}'}\n"+
		"reward: {name: arlarena}\nlayout: turns\n", server.URL))
	_, err := preflight.World(t.Context(), r, world, true)
	refused(t, err, `action: the server's actions have no field "text"; they have message`)
}
