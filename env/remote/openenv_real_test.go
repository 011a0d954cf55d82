package remote

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// realPython returns an interpreter with openenv-core.
func realPython(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("ROPEWALK_OPENENV_PYTHON"); named != "" {
		t.Setenv(python.Variable, named)
	}
	return pythontest.Need(t, "OPENENV", "openenv.core", "uvicorn")
}

// openEnv opens the environment openenv.
func openEnv(t *testing.T, more env.Settings) *environment {
	t.Helper()
	s := env.Settings{"action": `{"message": "{action}"}`, "env": `["PATH", "HOME"]`, "headers": "[]", "reset": "{}",
		"null_reward": "error", "tasks": 1000, "held_out": 100, "success_from": 1.0, "step_seconds": 30.0, "max_kb": 64,
		"sessions": 4, "idle_seconds": 60, "instruction": "Go to 0."}
	for name, value := range more {
		s[name] = value
	}
	e, err := openOpenEnv(env.Options{Settings: s, MaxTurns: 9})
	require.NoError(t, err)
	t.Cleanup(func() {
		w := e.(*environment)
		w.live.closeAll()
		if k := &w.port.(*openEnvPort).keeper; k.held {
			k.now.kill(errIdle)
		}
	})
	return e.(*environment)
}

// walk opens the environment of testdata/served.py, and returns what it writes its log to.
func walk(t *testing.T, more env.Settings) (*environment, string) {
	t.Helper()
	script, err := filepath.Abs("testdata/served.py")
	require.NoError(t, err)
	log := filepath.Join(t.TempDir(), "log")
	command, err := json.Marshal([]string{realPython(t), script, "{port}", log})
	require.NoError(t, err)
	s := env.Settings{"command": string(command), "actions": "left, right", "action": `{"move": "{index}"}`,
		"observation": "text", "success": "reached"}
	for name, value := range more {
		s[name] = value
	}
	return openEnv(t, s), log
}

func TestRealOpenEnvConforms(t *testing.T) {
	e, _ := walk(t, nil)
	envtest.Run(t, e, envtest.Case{Tasks: 6, Turns: 6, Nonsense: []string{"", "up"}})
}

// The server is killed in the middle of two episodes. Both go on.
func TestRealOpenEnvServerIsKilled(t *testing.T) {
	e, log := walk(t, env.Settings{"reset": `{"start": 3}`})
	_, one := start(t, e)
	_, two := start(t, e)
	one, _, err := e.Step(t.Context(), one, "left")
	require.NoError(t, err)
	kill(t, e.port.(*openEnvPort).now.cmd)
	one, _, err = e.Step(t.Context(), one, "left")
	require.NoError(t, err)
	two, _, err = e.Step(t.Context(), two, "right")
	require.NoError(t, err)
	_, last, err := e.Step(t.Context(), one, "left")
	require.NoError(t, err)
	require.True(t, last.Done && last.Success)
	require.NotEmpty(t, two)
	require.Equal(t, []string{"reset", "reset", "step 0", "reset", "step 0", "step 0", "reset", "step 1", "step 0"},
		logged(t, log))
}

// What breaks in the server's code is an error, and the next episode goes on.
func TestRealOpenEnvFaults(t *testing.T) {
	for want, from := range map[string]string{
		"no reward (or NaN)":                       `{"start": 25}`,
		"EXECUTION_ERROR: nothing is there":        `{"start": 26}`,
		"the OpenEnv server's step took too long:": `{"start": 27}`,
	} {
		more := env.Settings{"reset": from}
		if from == `{"start": 27}` {
			more["step_seconds"] = 5.0
		}
		e, _ := walk(t, more)
		task, state := start(t, e)
		_, _, err := e.Step(t.Context(), state, "right")
		require.ErrorContains(t, err, want)
		_, _, err = e.Reset(t.Context(), task)
		require.NoError(t, err)
	}
}

// A server of openenv-core has room for as many sessions as its environment says: here 4.
func TestRealOpenEnvWithoutRoom(t *testing.T) {
	e, _ := walk(t, env.Settings{"sessions": 8})
	e.port.(*openEnvPort).step = 2 * time.Second
	for range 4 {
		start(t, e)
	}
	task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		_, _, err := e.Reset(t.Context(), task)
		waited <- err
	}()
	require.Eventually(t, func() bool {
		e.live.mu.Lock()
		defer e.live.mu.Unlock()
		return e.live.alive == 5
	}, hangs, time.Millisecond)
	e.live.closeAll()
	require.NoError(t, <-waited, "the episode did not wait for room")
}

// The package makes an environment (openenv init), with room for one session. It wants a message and echoes it.
func TestRealOpenEnvTemplate(t *testing.T) {
	interpreter, dir := realPython(t), t.TempDir()
	out, err := exec.CommandContext(t.Context(), interpreter, "-m", "openenv.cli", "init", "demo_env", "--output-dir",
		dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	command, err := json.Marshal([]string{interpreter, "-m", "uvicorn", "demo_env.server.app:app", "--app-dir", dir,
		"--host", "127.0.0.1", "--port", "{port}", "--log-level", "error"})
	require.NoError(t, err)
	e := openEnv(t, env.Settings{"command": string(command), "sessions": 1, "observation": "echoed_message"})
	_, one := start(t, e)
	_, two := start(t, e)
	for _, said := range []string{"Hello", "again"} {
		var got env.Transition
		for _, state := range []*env.State{&one, &two} {
			*state, got, err = e.Step(t.Context(), *state, said)
			require.NoError(t, err)
			text, _ := got.Observation.Text()
			require.Equal(t, said, text)
			require.InDelta(t, 0.5, got.Reward, 1e-9)
		}
	}

	wrong := openEnv(t, env.Settings{"command": string(command), "action": `{"text": "{action}"}`})
	task, err := wrong.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.NoError(t, err)
	_, _, err = wrong.Reset(t.Context(), task)
	require.ErrorContains(t, err, `action: the server's actions have no field "text"; they have message, metadata`)
}

// The policy writes the whole action, and the server refuses one that is not of its schema.
func TestRealOpenEnvRefusesAnAction(t *testing.T) {
	e, log := walk(t, env.Settings{"action": "{json}", "actions": "", "reset": `{"start": 2}`})
	_, state := start(t, e)
	const refused = "The environment refused the action. "
	for action, want := range map[string]string{
		`{"move": 5}`:   refused + "move: Input should be less than or equal to 1.",
		`{"jump": 1}`:   refused + "move: Field required. jump: Extra inputs are not permitted.",
		`{"move": `:     "The action is not a JSON object.",
		`["move", 1]`:   "The action is not a JSON object.",
		`{"move": 1} x`: "The action is not a JSON object.",
	} {
		next, got, err := e.Step(t.Context(), state, action)
		require.NoError(t, err)
		require.False(t, got.Valid)
		require.Equal(t, state, next)
		text, _ := got.Observation.Text()
		require.Equal(t, want, text)
	}
	_, got, err := e.Step(t.Context(), state, `{"move": 1}`)
	require.NoError(t, err)
	require.True(t, got.Valid)
	require.Equal(t, []string{"reset", "step 1"}, logged(t, log))
}
