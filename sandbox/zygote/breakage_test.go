package zygote

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

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

// killUnder kills every zygote with a long call, which is one that has the same child in two successive checks.
func killUnder(t *testing.T) {
	done, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(done); <-ended })
	go func() {
		defer close(ended)
		seen := map[int]bool{}
		for {
			select {
			case <-done:
				return
			case <-time.After(500 * time.Millisecond):
			}
			now := map[int]bool{}
			for _, zygote := range children(os.Getpid()) {
				for _, call := range children(zygote) {
					now[call] = true
					if seen[call] {
						_ = syscall.Kill(zygote, syscall.SIGKILL) // fails if it has ended by itself
					}
				}
			}
			seen = now
		}
	}()
}

func TestACallThatBreaksLeavesTheOthers(t *testing.T) {
	e := open(t, Options{Workers: 2})
	killUnder(t)
	calls := []sandbox.Call{{Code: "1"}, {Code: "import time\ntime.sleep(60)"}, {Code: "3"}, {Code: "4"}}
	results, err := e.Run(t.Context(), calls)
	var broken sandbox.CallErrors
	require.ErrorAs(t, err, &broken)
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	require.ErrorContains(t, broken[1], "run call 1: sandbox broke, twice: await zygote's reply")
	for i, want := range []string{"1", "", "3", "4"} {
		require.Equal(t, want, results[i].Value)
		require.Equal(t, want == "", broken[i] != nil, "call %d: %v", i, broken[i])
	}
	outcomes, err := sandbox.RunEach(t.Context(), e, calls)
	require.NoError(t, err)
	require.ErrorIs(t, outcomes[1].Broken, sandbox.ErrInfrastructure)
	require.Equal(t, "4", outcomes[3].Value)
}

func TestASandboxThatIsGoneIsNotTriedForEveryCall(t *testing.T) {
	e := open(t, Options{Workers: 1})
	s := e.peek()
	s.drop(s.bare())
	e.plan.python.Executable = "/nowhere/python3"
	calls := make([]sandbox.Call, 100)
	_, err := e.Run(t.Context(), calls)
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	// One worker runs the calls in their order, so the first call is the first to break.
	require.ErrorContains(t, err, "run call 0: sandbox broke, twice: no interpreter can be started")
	var broken sandbox.CallErrors
	require.NotErrorAs(t, err, &broken, "the whole batch has failed")
}
