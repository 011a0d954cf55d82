package zygote

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hangs is how long a test waits for what must happen. Only a test that hangs waits so long.
const hangs = 5 * time.Minute

// until waits for a condition.
func until(t *testing.T, met func() bool) {
	t.Helper()
	require.Eventually(t, met, hangs, time.Millisecond)
}

// begin is code that gives its process a name, by which a test sees that the code runs.
const begin = "import ctypes\nctypes.CDLL(None).prctl(15, b'begun')\n"

// held is code that begins, and continues once the test has called release for its process.
const held = begin + "import os, time\nwhile os.getpriority(os.PRIO_PROCESS, 0) != 19: time.sleep(.01)\n"

// begun reports whether a process has run begin.
func begun(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && string(name) == "begun\n"
}

// release lets the code held continue.
func release(pid int) { _ = unix.Setpriority(unix.PRIO_PROCESS, pid, 19) }

// onCall calls act once for each process that runs a call and has begun, until the test ends.
func onCall(t *testing.T, act func(zygote, call int)) {
	done, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(done); <-ended })
	go func() {
		defer close(ended)
		seen := map[int]bool{}
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			now := map[int]bool{}
			for _, zygote := range children(os.Getpid()) {
				for _, call := range children(zygote) {
					if !begun(call) {
						continue
					}
					if now[call] = true; !seen[call] {
						act(zygote, call)
					}
				}
			}
			seen = now
		}
	}()
}

// onCell calls act when the session's interpreter has begun.
func onCell(t *testing.T, s *session, act func()) {
	ended := make(chan struct{})
	t.Cleanup(func() { <-ended })
	go func() {
		defer close(ended)
		for !begun(interpreterOf(s)) {
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
		act()
	}()
}

// children lists the processes that any thread of a process has started.
func children(pid int) []int {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	var out []int
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for field := range strings.FieldsSeq(string(text)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}

// stateOf returns the letter of a process's state, as in /proc/PID/stat.
func stateOf(pid int) string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}
