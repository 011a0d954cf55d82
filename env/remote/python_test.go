package remote

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// opened opens the environment python with a module of testdata, or with a module of the interpreter's own.
func opened(t *testing.T, module string, kwargs map[string]any, more env.Settings) env.Environment {
	t.Helper()
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	path, err := filepath.Abs("testdata")
	require.NoError(t, err)
	text, err := json.Marshal(kwargs)
	require.NoError(t, err)
	s := env.Settings{"module": module, "kind": "gymnasium", "kwargs": string(text), "path": path, "tasks": 1000,
		"held_out": 100, "success_from": 1.0, "step_seconds": 30.0, "max_kb": 64, "sessions": 8, "idle_seconds": 60,
		"processes": 1}
	for name, value := range more {
		s[name] = value
	}
	e, err := openPython(env.Options{Settings: s, MaxTurns: 9})
	require.NoError(t, err)
	t.Cleanup(func() { e.(*environment).live.closeAll() })
	return e
}

var twoWays = env.Settings{"actions": "left, right", "instruction": "Go to 0."}

func TestPythonConforms(t *testing.T) {
	e := opened(t, "toy:Walk", map[string]any{}, twoWays)
	envtest.Run(t, e, envtest.Case{Tasks: 6, Turns: 6, Nonsense: []string{"", "up"}})
}

// start begins an episode of a training task.
func start(t *testing.T, e env.Environment) (env.Task, env.State) {
	t.Helper()
	task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, PerStep: 1})
	require.NoError(t, err)
	state, _, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	return task, state
}

// An episode goes on in one session. A new session repeats it after the old one is lost.
func TestALostSessionIsRepeated(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := opened(t, "toy:Walk", map[string]any{"log": log, "start": 5}, twoWays)
	_, state := start(t, e)
	state, _, err := e.Step(t.Context(), state, "left")
	require.NoError(t, err)
	require.Equal(t, []string{"reset", "step 0"}, logged(t, log))
	e.(*environment).live.closeAll()
	state, second, err := e.Step(t.Context(), state, "right")
	require.NoError(t, err)
	require.True(t, second.Valid)
	require.Equal(t, []string{"reset", "step 0", "reset", "step 0", "step 1"}, logged(t, log))
	_, _, err = e.Step(t.Context(), state, "right")
	require.NoError(t, err)
	require.Len(t, logged(t, log), 6, "a live session was not used")
}

// The adapter is killed in the middle of two episodes. Both go on in another one.
func TestAKilledAdapterIsReplaced(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := opened(t, "toy:Walk", map[string]any{"log": log, "start": 3}, twoWays)
	_, one := start(t, e)
	_, two := start(t, e)
	one, _, err := e.Step(t.Context(), one, "left")
	require.NoError(t, err)
	kill(t, e.(*environment).port.(*pythonPort).keepers[0].now.cmd)
	_, _, err = e.Step(t.Context(), one, "left")
	require.NoError(t, err)
	_, _, err = e.Step(t.Context(), two, "right")
	require.NoError(t, err)
	require.Equal(t, []string{"reset", "reset", "step 0", "reset", "step 0", "step 0", "reset", "step 1"},
		logged(t, log))
}

// One episode hangs. Another one, which waits for the same process meanwhile, goes on.
func TestOthersOutliveAHang(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := opened(t, "toy:Walk", map[string]any{"log": log, "start": 3, "hang_at": 4},
		env.Settings{"actions": "left,right", "step_seconds": 3.0})
	_, one := start(t, e)
	_, two := start(t, e)
	hung := make(chan error, 1)
	go func() {
		_, _, err := e.Step(t.Context(), one, "right")
		hung <- err
	}()
	require.Eventually(t, func() bool { return slices.Contains(logged(t, log), "step 1") }, hangs, time.Millisecond)
	_, got, err := e.Step(t.Context(), two, "left")
	require.NoError(t, err)
	require.True(t, got.Valid)
	require.ErrorContains(t, <-hung, "took too long")
}

// With one session, episodes that alternate are repeated each time.
func TestMoreEpisodesThanSessions(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := opened(t, "toy:Walk", map[string]any{"log": log, "start": 5},
		env.Settings{"actions": "left,right", "sessions": 1})
	states := make([]env.State, 2)
	var err error
	for i := range states {
		task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: i})
		require.NoError(t, err)
		states[i], _, err = e.Reset(t.Context(), task)
		require.NoError(t, err)
	}
	for range 3 {
		for i := range states {
			states[i], _, err = e.Step(t.Context(), states[i], "left")
			require.NoError(t, err)
		}
	}
	require.Len(t, logged(t, log), 2+2*(2+3+4))
}

// logged reads what the toy was asked, without seeds.
func logged(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "reset") {
			line = "reset"
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// An episode that shows something else when it is repeated has no result.
func TestAnEpisodeThatDoesNotRepeat(t *testing.T) {
	e := opened(t, "toy:Walk", map[string]any{"fault": "random"}, twoWays)
	_, state := start(t, e)
	e.(*environment).live.closeAll()
	_, _, err := e.Step(t.Context(), state, "left")
	require.ErrorIs(t, err, ErrDiffers)
}

// Each fault of the other side is an error. The next episode of a sound environment in the same process goes on.
func TestFaultsAreErrors(t *testing.T) {
	for fault, want := range map[string]string{
		"hang": "took too long", "die": "the Python adapter ended", "raise": "RuntimeError: no such move",
		"flood": "more than", "type": "no form as text", "short": "step must return 5 values",
		"nan": "the reward is nan", "inf": "the reward is inf", "text reward": "the reward is a str",
	} {
		t.Run(fault, func(t *testing.T) {
			more := env.Settings{"actions": "left,right"}
			if fault == "hang" {
				more["step_seconds"] = 3.0
			}
			e := opened(t, "toy:Walk", map[string]any{"fault": fault}, more)
			task, state := start(t, e)
			_, _, err := e.Step(t.Context(), state, "left")
			require.ErrorContains(t, err, want)
			_, _, err = e.Reset(t.Context(), task)
			require.NoError(t, err, "the adapter was not started again")
		})
	}
}

func TestDeathsInARowWait(t *testing.T) {
	e := opened(t, "toy:Walk", map[string]any{"fault": "die"}, twoWays)
	port := e.(*environment).port.(*pythonPort)
	port.keepers[0].start = func() (*process, error) {
		return startProcess(code{interpreter: "/bin/false"}, 1<<10, time.Minute)
	}
	task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.NoError(t, err)
	var last error
	for range 6 {
		_, _, last = e.Reset(t.Context(), task)
		require.Error(t, last)
	}
	require.ErrorContains(t, last, "times in a row")
}

func TestQuestionsAreScored(t *testing.T) {
	e := opened(t, "toy:sums", map[string]any{}, env.Settings{"kind": "question", "tasks": 10, "held_out": 10})
	task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: 1, PerStep: 10})
	require.NoError(t, err)
	state, seen, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	text, _ := seen.Text()
	require.Equal(t, "11 + 11 = ?", text)
	_, right, err := e.Step(t.Context(), state, "22")
	require.NoError(t, err)
	require.True(t, right.Done && right.Success)
	require.Equal(t, 1.0, right.Reward)
	_, wrong, err := e.Step(t.Context(), state, "21")
	require.NoError(t, err)
	require.True(t, wrong.Done)
	require.False(t, wrong.Success)
	require.Zero(t, wrong.Reward)
}

// A list of questions is made once for each process, however many sessions there are.
func TestQuestionsAreListedOnce(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := opened(t, "toy:sums", map[string]any{"log": log},
		env.Settings{"kind": "question", "tasks": 10, "held_out": 10})
	for range 3 {
		start(t, e)
	}
	require.Equal(t, []string{"made"}, logged(t, log))
}

// A question's row demonstrates its answer, and another row's is a wrong one of the same form.
func TestQuestionsAreSolved(t *testing.T) {
	e := opened(t, "toy:sums", map[string]any{}, env.Settings{"kind": "question", "tasks": 10, "held_out": 10})
	_, state := start(t, e)
	right, err := e.(env.Expert).Solve(t.Context(), state)
	require.NoError(t, err)
	_, got, err := e.Step(t.Context(), state, right[0])
	require.NoError(t, err)
	require.True(t, got.Success)
	wrong := 0
	for draw := range uint64(10) {
		answer, err := e.(env.Misleader).Mislead(t.Context(), state, draw)
		require.NoError(t, err)
		require.Regexp(t, `^\d+$`, answer)
		if answer != right[0] {
			wrong++
		}
	}
	require.Equal(t, 9, wrong)

	walk := opened(t, "toy:Walk", map[string]any{}, twoWays)
	_, state = start(t, walk)
	_, err = walk.(env.Expert).Solve(t.Context(), state)
	require.ErrorIs(t, err, env.ErrUnsolved)
}

func TestSettingsThatAreRefused(t *testing.T) {
	for want, s := range map[string]env.Settings{
		"kwargs: must be a JSON object":   {"kwargs": "[1]"},
		"module: must be package:name":    {"kwargs": "{}", "module": "toy"},
		"path: must be absolute":          {"kwargs": "{}", "path": "toy"},
		"actions: name 2 is empty":        {"kwargs": "{}", "actions": "a,,b"},
		"tasks, held_out: both must be 0": {"kwargs": "{}", "tasks": 5},
		"tasks: must be at least 1, for":  {"kwargs": "{}", "kind": "question"},
		"unknown field \"no_such_field\"": {"no_such_field": 1},
	} {
		_, err := openPython(env.Options{Settings: s})
		require.ErrorContains(t, err, want)
	}
}
