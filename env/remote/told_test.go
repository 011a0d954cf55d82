package remote

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

// told are the settings of an environment that says what its tasks are and demonstrates them.
var told = env.Settings{"tasks": 0, "held_out": 0, "expert": true, "instruction": "Go down to 0."}

func TestAnEnvironmentThatTellsConforms(t *testing.T) {
	e := opened(t, "toy:Stairs", map[string]any{}, told)
	envtest.Run(t, e, envtest.Case{Tasks: 3, Turns: 6, Nonsense: []string{"", "sideways"}})
}

// A prompt lists what is admissible now; another action reaches the environment and is invalid. The state knows the
// task's type and level, and how far the episode came.
func TestWhatInfoTells(t *testing.T) {
	e := opened(t, "toy:Stairs", map[string]any{}, told)
	task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: 1})
	require.NoError(t, err)
	state, seen, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	require.Equal(t, env.Seen("You are at 2.", "down", "up"), seen)
	task, err = e.(env.Classifier).Classify(task, state)
	require.NoError(t, err)
	require.Equal(t, "far", task.Type)
	require.Equal(t, 2, task.Level)
	for _, c := range []struct {
		action, shown string
		admissible    []string
		valid         bool
		score         float64
	}{
		{"", "There is no action.", []string{"down", "up"}, false, 0.5},
		{"jump", "Nothing happens.", []string{"down", "up"}, false, 0.5},
		{"up", "You are at 3.", []string{"down", "up"}, true, 0.25},
		{"up", "You are at 4.", []string{"down"}, true, 0},
		{"up", "You are at 5.", []string{"down"}, false, -1},
	} {
		if c.score < 0 { // the environment breaks its contract
			_, _, err = e.Step(t.Context(), state, c.action)
			require.ErrorContains(t, err, "held-out seed 1, action 4: the Python code raised ValueError: info: score")
			break
		}
		next, got, err := e.Step(t.Context(), state, c.action)
		require.NoError(t, err)
		require.Equal(t, env.Seen(c.shown, c.admissible...), got.Observation, c.action)
		require.Equal(t, c.valid, got.Valid, c.action)
		score, err := e.(env.Scorer).Score(next)
		require.NoError(t, err)
		require.Equal(t, c.score, *score)
		state = next
	}
}

// Each training task comes once before any repeats, and the environment gets its split with a seed that counts in it.
func TestTasksOfTheEnvironment(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := opened(t, "toy:Stairs", map[string]any{"log": log}, told)
	specs := map[string]bool{}
	for i := range 12 {
		task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1 + i/2, Index: i % 2, PerStep: 2})
		require.NoError(t, err)
		specs[task.Spec] = true
		if i == 5 || i == 11 {
			require.Len(t, specs, 6)
		}
	}
	for i := range 3 {
		task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: 3 + i})
		require.NoError(t, err)
		require.Equal(t, `{"seed":`+string(rune('0'+i))+`,"split":"held-out"}`, task.Spec)
		_, _, err = e.Reset(t.Context(), task)
		require.NoError(t, err)
	}
	require.Equal(t, "reset held_out 0\nreset held_out 1\nreset held_out 2", strings.Join(whole(t, log), "\n"))
}

// The expert is asked where the episode is, also after a random action.
func TestAnEnvironmentsExpert(t *testing.T) {
	e := opened(t, "toy:Stairs", map[string]any{}, told)
	require.NoError(t, e.(env.Tried).Try(t.Context()))
	task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: 2})
	require.NoError(t, err)
	state, _, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	state, _, err = e.Step(t.Context(), state, "up")
	require.NoError(t, err)
	e.(*environment).live.closeAll() // the expert repeats the episode, as an action does
	for range 2 {
		plan, err := e.(env.Expert).Solve(t.Context(), state)
		require.NoError(t, err)
		require.Equal(t, []string{"down", "down"}, plan)
		for _, action := range plan {
			state, _, err = e.Step(t.Context(), state, action)
			require.NoError(t, err)
		}
	}
	_, err = e.(env.Expert).Solve(t.Context(), state)
	require.ErrorIs(t, err, env.ErrUnsolved)
}

// What breaks the contract is an error that names the field.
func TestBadInfo(t *testing.T) {
	info := func(name string, value any) map[string]any {
		return map[string]any{"info": map[string]any{name: value}}
	}
	tasks := func(train, heldOut any) map[string]any {
		return map[string]any{"tasks": map[string]any{"train": train, "held_out": heldOut}}
	}
	long := strings.Repeat("x", 70000)
	for want, kwargs := range map[string]map[string]any{
		"info: admissible is a str, want a list of texts":                     info("admissible", "up"),
		"info: admissible: item 1 is 7, want a text":                          info("admissible", []any{"up", 7}),
		"info: admissible: item 0 is '', want a text":                         info("admissible", []any{""}),
		"info: admissible is empty before the end":                            info("admissible", []any{}),
		"info: type: item 0 is 3, want a text":                                info("type", 3),
		"info: type is 'a\\nb', want one line":                                info("type", "a\nb"),
		"info: level is 0, want a whole number from 1":                        info("level", 0),
		"info: level is True, want a whole number from 1":                     info("level", true),
		"the score in info is a str, want a number":                           info("score", "1"),
		"info: score is 2, want a number from 0 to 1":                         info("score", 2),
		"the observation and 1 admissible actions have 70013 bytes":           info("admissible", []any{long}),
		"tasks: the Python code raised TypeError: tasks() must return":        {"tasks": map[string]any{"train": 6}},
		"whole numbers from 1 to 1,000,000, got {'held_out': 1, 'train': 0":   tasks(0, 1),
		"whole numbers from 1 to 1,000,000, got {'held_out': 1, 'train': 1.5": tasks(1.5, 1),
		"expert: the Python code raised TypeError: expert() is a int":         {"plan": 7},
		"expert: the Python code raised TypeError: expert(): item 0":          {"plan": []any{7}},
	} {
		e := opened(t, "toy:Stairs", kwargs, told)
		require.ErrorContains(t, e.(env.Tried).Try(t.Context()), want)
	}
	for want, more := range map[string]env.Settings{
		"expert() holds 'down', which is not one of the actions": {"actions": "left,up"},
		"info: admissible holds 'up', which is not one of":       {"actions": "left,down"},
		"the environment has no method expert()":                 {"module": "toy:Walk", "kwargs": "{}"},
		"the environment has no method tasks()": {"module": "toy:Walk", "kwargs": "{}", "tasks": 0,
			"held_out": 0},
	} {
		s := env.Settings{"expert": true, "tasks": 10, "held_out": 10}
		for name, value := range more {
			s[name] = value
		}
		e := opened(t, "toy:Stairs", info("admissible", []string{"up"}), s)
		require.ErrorContains(t, e.(env.Tried).Try(t.Context()), want)
	}
}

// A step whose info breaks the contract is an error of its own episode. The others go on in the same process.
func TestBadInfoOfAStep(t *testing.T) {
	e := opened(t, "toy:Stairs", map[string]any{"more": map[string]any{"admissible": []any{}}}, told)
	_, state := start(t, e)
	_, _, err := e.Step(t.Context(), state, "up")
	require.ErrorContains(t, err, "action 1: the Python code raised ValueError: info: admissible is empty before")
	start(t, e)
}

// Sessions are divided among processes. One that dies takes its own episodes with it, and the others go on.
func TestAProcessOfSeveralDies(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	more := env.Settings{"processes": 2}
	for name, value := range told {
		more[name] = value
	}
	e := opened(t, "toy:Stairs", map[string]any{"log": log}, more)
	port := e.(*environment).port.(*pythonPort)
	states := make([]env.State, 4)
	for i := range states {
		task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Index: i})
		require.NoError(t, err)
		states[i], _, err = e.Reset(t.Context(), task)
		require.NoError(t, err)
	}
	require.Equal(t, []int{2, 2}, port.sessions)
	kept := port.keepers[1].now
	_, _, err := e.Step(t.Context(), states[0], "die")
	require.ErrorContains(t, err, "the Python adapter ended")
	before := len(whole(t, log))
	var all sync.WaitGroup
	for _, i := range []int{1, 3} { // episodes of the other process
		all.Go(func() {
			_, _, err := e.Step(t.Context(), states[i], "down")
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.Equal(t, []string{"step down", "step down"}, whole(t, log)[before:], "an episode was repeated")
	require.NoError(t, kept.failure())
	_, _, err = e.Step(t.Context(), states[2], "down")
	require.NoError(t, err, "an episode of the process that died was not repeated")
	require.Equal(t, "step down", whole(t, log)[before+3])
}

// whole reads what the toy was asked.
func whole(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
