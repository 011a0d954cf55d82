package environments

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Each declaration is complete enough for a recipe to name the environment.
func TestDeclarations(t *testing.T) {
	names := []string{}
	for _, d := range All {
		require.NotContains(t, names, d.Name)
		names = append(names, d.Name)
		got, ok := Named(d.Name)
		require.True(t, ok)
		require.Equal(t, d.Doc, got.Doc)
		require.NotEmpty(t, d.Doc, d.Name)
		if d.Mixed { // its parts say the rest
			continue
		}
		require.NotEmpty(t, d.Rewards, d.Name)
		require.Equal(t, d.Imported, d.Open == nil, "%s: what can be opened is not imported", d.Name)
		if d.Imported {
			require.Empty(t, d.Protocol, d.Name)
			continue
		}
		p, err := protocol.Named(d.Protocol)
		require.NoError(t, err, d.Name)
		require.Equal(t, d.Interactive, p.Spec().Acts, "%s: its protocol does not fit", d.Name)
		settings := []string{}
		for _, s := range d.Settings {
			require.False(t, slices.Contains(settings, s.Name), "%s declares %s twice", d.Name, s.Name)
			settings = append(settings, s.Name)
		}
		if d.Demonstrated {
			testDemonstrated(t, d)
		}
	}
	_, ok := Named("no such environment")
	require.False(t, ok)
}

// testDemonstrated checks that a teacher or an expert can demonstrate the environment's tasks.
func testDemonstrated(t *testing.T, d env.Declaration) {
	e, err := d.Open(env.Options{Settings: defaults(d), MaxTurns: 15})
	require.NoError(t, err, d.Name)
	require.Equal(t, d.Name, e.Name())
	_, teaches := e.(env.Teacher)
	_, solves := e.(env.Expert)
	require.True(t, teaches || d.Interactive && solves, "%s has neither teacher nor expert", d.Name)
}

// The short example of docs/environments.md fulfils the contract of environments.
func TestTheShortExample(t *testing.T) {
	e, err := guess.Open(env.Options{MaxTurns: 6})
	require.NoError(t, err)
	envtest.Run(t, e, envtest.Case{Tasks: 8, Turns: 8, Nonsense: []string{"", "seven"}})
	state, _, err := e.Reset(t.Context(), env.Task{ID: "guess-7", Spec: `{"Hidden":7,"Left":6}`})
	require.NoError(t, err)
	for action, want := range map[string]string{"3": "Higher", "9": "Lower", "7": "Found"} {
		_, step, err := e.Step(t.Context(), state, action)
		require.NoError(t, err)
		text, _ := step.Observation.Text()
		require.Equal(t, want, text)
		require.Equal(t, action == "7", step.Success && step.Done && step.Reward == 10)
	}
}

// The example of CONTRIBUTING.md fulfils the contract of environments.
func TestTheExampleOfContributing(t *testing.T) {
	e, err := hunt.Open(env.Options{Settings: env.Settings{"highest": 9}, MaxTurns: 6})
	require.NoError(t, err)
	envtest.Run(t, e, envtest.Case{Tasks: 12, Turns: 8, Nonsense: []string{"", "seven"}, Solved: 1})
	_, err = hunt.Open(env.Options{Settings: env.Settings{"lowest": 1}, MaxTurns: 6})
	require.ErrorContains(t, err, `unknown field "lowest"`)
}
