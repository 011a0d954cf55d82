package zygote

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/sandbox"
)

// shortWall is a wall limit that a stop exceeds twice.
var shortWall = sandbox.Limits{CPU: time.Second, Wall: time.Second}

// stopFor stops a process for longer than the wall limit, and then lets it end.
func stopFor(pid int) {
	_ = unix.Kill(pid, unix.SIGSTOP)
	time.Sleep(2 * shortWall.Wall)
	_ = unix.Kill(pid, unix.SIGCONT)
	release(pid)
}

// Time in which a call's process was stopped from outside does not count.
func TestAStopFromOutsideIsNoTimeOut(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_SANDBOX", "test-sandbox")
	everyTier(t, func(t *testing.T, e *Executor) {
		onCall(t, func(_, call int) { stopFor(call) })
		got := runAll(t, e, sandbox.Call{Code: held + "'whole'", Limits: shortWall})[0]
		require.Equal(t, "'whole'", got.Value, got.Status)
	})
}

// The same if the process that is stopped is one that the call has started.
func TestAStopOfACallsChildIsNoTimeOut(t *testing.T) {
	const code = "import os\nif (pid := os.fork()) == 0:\n    exec(HELD)\n    os._exit(0)\nos.waitpid(pid, 0)[1]"
	e := strongest(t)
	z := e.peek().bare().command.Process.Pid
	go func() {
		for t.Context().Err() == nil {
			for _, call := range children(z) {
				for _, child := range children(call) {
					if begun(child) {
						stopFor(child)
						return
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	got := runAll(t, e, sandbox.Call{Code: "HELD = '''" + held + "'''\n" + code, Limits: shortWall})[0]
	require.Equal(t, "0", got.Value, got.Status)
}

// A call that stops itself has no more time than others.
func TestAStopOfItsOwnCounts(t *testing.T) {
	const code = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"
	got := runAll(t, strongest(t), sandbox.Call{Code: code, Limits: shortWall})[0]
	require.Equal(t, sandbox.StatusTimeoutWall, got.Status)
}

// A call that has ended is not to blame if its zygote does not say so.
func TestACallThatEndedWhileItsZygoteIsStopped(t *testing.T) {
	e := open(t, Options{Workers: 1})
	var runs atomic.Int64
	onCall(t, func(zygote, call int) {
		if runs.Add(1) == 1 {
			_ = unix.Kill(zygote, unix.SIGSTOP)
		}
		release(call)
	})
	got := runAll(t, e, sandbox.Call{Code: held + "'whole'", Limits: shortWall})[0]
	require.Equal(t, "'whole'", got.Value, got.Status)
	require.EqualValues(t, 2, runs.Load())
}

// Time in which this process did not run does not count either.
func TestAStandstillIsNoTimeOut(t *testing.T) {
	now := time.Now()
	r := &running{looked: now.Add(-time.Minute), until: now.Add(-time.Second)}
	r.excuse()
	require.Equal(t, now.Add(-time.Second).Add(r.stood), r.until)
	require.GreaterOrEqual(t, r.stood, time.Minute)
	earlier := now.Add(-time.Minute)
	s := &session{watch: watch{began: earlier, looked: earlier, next: earlier}}
	s.excuse(now)
	require.Equal(t, now, s.watch.began)
}

func TestAStopOfASessionIsNoTimeOut(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_SANDBOX", "test-sandbox")
	everySession(t, func(t *testing.T, s *Sessions) {
		one := newSessionOf(t, s, shortWall)
		onCell(t, one, func() { stopFor(interpreterOf(one)) })
		got, err := one.Run(t.Context(), sandbox.Call{Code: held + "'whole'"})
		require.NoError(t, err)
		require.Equal(t, "'whole'", got.Value, got.Status)
	})
}
