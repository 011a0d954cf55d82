package zygote

import (
	"context"
	"fmt"
	"os/signal"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/sandbox"
)

// foreignSignals can only come from outside unless the code asks for them.
var foreignSignals = []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1,
	unix.SIGABRT, unix.SIGXCPU, 40}

// faults can come from the kernel. Python ignores SIGPIPE and SIGXFSZ.
var faults = []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGTRAP, unix.SIGSYS, unix.SIGALRM,
	unix.SIGVTALRM, unix.SIGPROF}

// A call that gets any signal from outside once is run again and has its normal verdict.
func TestACallSignalledFromOutsideIsRunAgain(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_SANDBOX", "test-sandbox")
	everyTier(t, func(t *testing.T, e *Executor) {
		for _, number := range append(append([]unix.Signal{}, foreignSignals...), faults...) {
			t.Run(number.String(), func(t *testing.T) {
				require.Equal(t, "'whole'", signalOnce(t, e, number, held+"'whole'", 2).Value)
			})
		}
	})
}

// signalOnce runs the code, sends its process a signal in its first run, and requires a number of runs.
func signalOnce(t *testing.T, e *Executor, number unix.Signal, code string, want int64) sandbox.Result {
	t.Helper()
	var runs atomic.Int64
	onCall(t, func(_, call int) {
		if runs.Add(1) == 1 {
			_ = unix.Kill(call, number)
		} else {
			release(call)
		}
	})
	got := run(t, e, code)
	require.Equal(t, want, runs.Load())
	return got
}

func TestACallAlwaysSignalledFromOutsideIsBreakage(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_SANDBOX", "test-sandbox")
	everyTier(t, func(t *testing.T, e *Executor) {
		for _, number := range foreignSignals {
			t.Run(number.String(), func(t *testing.T) {
				onCall(t, func(_, call int) { _ = unix.Kill(call, number) })
				outcomes, err := sandbox.RunEach(t.Context(), e, []sandbox.Call{{Code: held}})
				require.NoError(t, err)
				require.ErrorIs(t, outcomes[0].Broken, sandbox.ErrInfrastructure)
			})
		}
	})
}

// A worker that was started by nohup ignores SIGHUP. Its calls do not.
func TestSignalsThatTheWorkerIgnores(t *testing.T) {
	signal.Ignore(unix.SIGHUP)
	defer signal.Reset(unix.SIGHUP)
	const code = "import signal\n[n for n in signal.valid_signals() if signal.getsignal(n) == signal.SIG_IGN]"
	everyTier(t, func(t *testing.T, e *Executor) {
		require.Equal(t, "[<Signals.SIGPIPE: 13>, <Signals.SIGXFSZ: 25>]", run(t, e, code).Value)
	})
}

// Signals that code sends to itself are its own, whatever their number.
func TestOwnSignalsAreVerdicts(t *testing.T) {
	e := strongest(t)
	for _, number := range append(append([]unix.Signal{}, foreignSignals...), faults...) {
		t.Run(number.String(), func(t *testing.T) {
			forks := e.Stats().Forks
			got := run(t, e, fmt.Sprintf("import os, time\nos.kill(os.getpid(), %d)\ntime.sleep(60)", number))
			require.Equal(t, sandbox.StatusKilled, got.Status, got.Stderr)
			require.Equal(t, unix.SignalName(number), got.Signal)
			require.Equal(t, forks+1, e.Stats().Forks, "it is not run again")
		})
	}
}

// What the kernel does to a call is a verdict: at once if nothing else can have done it, otherwise after a second run.
func TestEndsThatTheKernelCauses(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_SANDBOX", "test-sandbox")
	everyTier(t, func(t *testing.T, e *Executor) {
		for _, c := range []struct {
			name, code, signal string
			status             sandbox.Status
			runs               int64
		}{
			{"fault", "import ctypes\nctypes.string_at(0)", "SIGSEGV", sandbox.StatusKilled, 2},
			{"alarm", "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, .01)\ntime.sleep(60)", "SIGALRM",
				sandbox.StatusKilled, 2},
			{"interrupt of its own", "raise KeyboardInterrupt", "", sandbox.StatusRuntime, 2},
			{"interrupt that is caught", "import _thread, time\ntry:\n    _thread.interrupt_main()\n" +
				"    time.sleep(60)\nexcept KeyboardInterrupt: pass", "", sandbox.StatusOK, 1},
			{"CPU limit", "while True: pass", "SIGXCPU", sandbox.StatusTimeoutCPU, 1},
			{"CPU limit that it has lowered", "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 5))\n" +
				"while True: pass", "SIGXCPU", sandbox.StatusKilled, 1},
		} {
			t.Run(c.name, func(t *testing.T) {
				limits := quick
				if c.status == sandbox.StatusKilled {
					limits.CPU = 5 * time.Second
				}
				forks := e.Stats().Forks
				got := runAll(t, e, sandbox.Call{Code: c.code, Limits: limits})[0]
				require.Equal(t, c.status, got.Status, got.Stderr)
				require.Equal(t, c.signal, got.Signal)
				require.Equal(t, c.runs, e.Stats().Forks-forks)
			})
		}
	})
}

// A SIGXCPU from outside is no time-out, however much CPU time the call has used. An interrupt that the code handles
// because a library has installed a handler is none of its own.
func TestForeignSignalsThatLookLikeTheCallsOwn(t *testing.T) {
	e := strongest(t)
	const busy = "import time\nwhile time.process_time() < .7: pass\n"
	require.Equal(t, "1", signalOnce(t, e, unix.SIGXCPU, busy+held+"1", 2).Value)
	t.Run("asyncio", func(t *testing.T) {
		const code = "import asyncio\nasync def wait():\n    exec(HELD)\nasyncio.run(wait())\n1"
		require.Equal(t, "1", signalOnce(t, e, unix.SIGINT, fmt.Sprintf("HELD = %q\n", held)+code, 2).Value)
	})
}

// A handler that the code installs gets the code's own SIGINT.
func TestOwnInterruptsCanBeHandled(t *testing.T) {
	const code = "import os, signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" +
		"try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)\nexcept KeyboardInterrupt: print('caught')"
	require.Equal(t, "caught\n", run(t, strongest(t), code).Stdout)
}

func TestACellSignalledFromOutsideIsBreakage(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		for _, number := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGXCPU} {
			one := newSessionOf(t, s, quick)
			onCell(t, one, func() { _ = unix.Kill(interpreterOf(one), number) })
			_, err := one.Run(context.Background(), sandbox.Call{Code: held})
			require.ErrorIs(t, err, sandbox.ErrSessionLost, number)
			require.NotErrorIs(t, err, sandbox.ErrSessionEnded, number)
		}
		idle := newSessionOf(t, s, quick)
		require.NoError(t, unix.Kill(interpreterOf(idle), unix.SIGTERM))
		<-idle.gone
		_, err := idle.Run(t.Context(), sandbox.Call{Code: "1"})
		require.ErrorIs(t, err, sandbox.ErrSessionLost)
		require.NotErrorIs(t, err, sandbox.ErrSessionEnded)
	})
}
