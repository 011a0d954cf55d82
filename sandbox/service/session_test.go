package service

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/sandbox/zygote/zygotetest"
)

// pythonService returns a service with real interpreters, or skips the test.
func pythonService(t *testing.T) (*Service, *zygote.Sessions) {
	t.Helper()
	sessions := zygotetest.Sessions(t)
	return newService(t, Options{Executor: &fake{}, Sessions: sessions}), sessions
}

// interpreter finds the descendant of this process that has a process id in its innermost namespace.
func interpreter(t *testing.T, inside string) int {
	t.Helper()
	parent, inner := map[int]int{}, map[int]string{}
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	require.NoError(t, err)
	for _, path := range statuses {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			switch fields[0] {
			case "PPid:":
				parent[pid], err = strconv.Atoi(fields[1])
				require.NoError(t, err)
			case "NSpid:":
				inner[pid] = fields[len(fields)-1]
			}
		}
	}
	var found []int
	for pid := range inner {
		for above := parent[pid]; above > 1; above = parent[above] {
			if above == os.Getpid() && inner[pid] == inside {
				found = append(found, pid)
			}
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

// A session whose process is killed continues under its id, or reports that it is lost.
func TestASessionOutlivesItsInterpreter(t *testing.T) {
	s, _ := pythonService(t)
	open := func() (run func(code string) (int, string)) {
		id := askFor[SessionOpened](t, s, "POST", "/v1/sessions", `{}`).ID
		t.Cleanup(func() { ask(t, s, "DELETE", "/v1/sessions/"+id, "") })
		return func(code string) (int, string) {
			return ask(t, s, "POST", "/v1/sessions/"+id+"/run", fmt.Sprintf(`{"code":%q}`, code))
		}
	}
	value := func(code int, text string) string {
		t.Helper()
		require.Equal(t, 200, code, text)
		_, rest, _ := strings.Cut(text, `"value":"`)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	run := open()
	value(run("import os, random\nx = random.random()"))
	first := value(run("x"))
	for _, gone := range []bool{false, true} { // as the next cell comes
		pid := interpreter(t, value(run("os.getpid()")))
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		if gone {
			require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, hangs, time.Millisecond)
		}
		require.Equal(t, first, value(run("x")))
	}
	_, text := ask(t, s, "GET", "/metrics", "")
	require.Contains(t, text, "\nropewalk_sandbox_session_replays_total 2\n")
	require.Contains(t, text, "\nropewalk_sandbox_sessions_lost_total 0\n")
	code, text := run("os.kill(os.getpid(), 9)")
	require.Equal(t, 200, code)
	require.Contains(t, text, `"status":"killed"`, "the cell killed it itself")
	code, text = run("x")
	requireError(t, code, text, 410, "session_ended", "", "judged killed")

	run = open()
	inside := value(run("import os\nos.getpid()"))
	value(run("os.urandom(8).hex()"))
	require.NoError(t, syscall.Kill(interpreter(t, inside), syscall.SIGKILL))
	for range 2 {
		code, text := run("1")
		requireError(t, code, text, 410, "session_lost", "", "cell 2 had another value when run again")
	}
	_, text = ask(t, s, "GET", "/metrics", "")
	require.Contains(t, text, "\nropewalk_sandbox_sessions_lost_total 1\n")
}

// Deleting a session ends the cell that runs in it.
func TestDeletingASessionEndsItsCell(t *testing.T) {
	s, _ := pythonService(t)
	id := askFor[SessionOpened](t, s, "POST", "/v1/sessions", `{}`).ID
	type answered struct {
		code int
		text string
	}
	run := func(cell string) answered {
		code, text := ask(t, s, "POST", "/v1/sessions/"+id+"/run", fmt.Sprintf(`{"code":%q}`, cell))
		return answered{code, text}
	}
	_, rest, _ := strings.Cut(run("import ctypes, os, time\nos.getpid()").text, `"value":"`)
	inside, _, _ := strings.Cut(rest, `"`)
	name := fmt.Sprintf("/proc/%d/comm", interpreter(t, inside))
	ran := make(chan answered, 1)
	go func() { ran <- run("ctypes.CDLL(None).prctl(15, b'begun')\ntime.sleep(3600)") }()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(name)
		return err == nil && string(text) == "begun\n"
	}, hangs, time.Millisecond)
	code, _ := ask(t, s, "DELETE", "/v1/sessions/"+id, "")
	require.Equal(t, 204, code)
	got := <-ran
	require.Contains(t, []int{404, 410}, got.code, got.text)
	require.Contains(t, got.text, "session_lost")
	require.Zero(t, s.sessions.count())
}
