package zygote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/sandbox"
)

// A call whose process is killed once from outside, as by the machine's OOM killer, is run again and gets its normal
// verdict.
func TestACallKilledFromOutsideIsRunAgain(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		var runs atomic.Int64
		onCall(t, func(_, call int) {
			if runs.Add(1) == 1 {
				_ = unix.Kill(call, unix.SIGKILL)
			} else {
				release(call)
			}
		})
		require.Equal(t, "'whole'", run(t, e, held+"'whole'").Value)
		require.EqualValues(t, 2, runs.Load())
	})
}

// A call that is killed every time has no verdict: the call is broken. The other calls of its batch are not.
func TestACallAlwaysKilledFromOutsideIsBreakage(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		var kills atomic.Int64
		onCall(t, func(_, call int) {
			kills.Add(1)
			_ = unix.Kill(call, unix.SIGKILL)
		})
		outcomes, err := sandbox.RunEach(t.Context(), e, []sandbox.Call{{Code: held}, {Code: "1"}})
		require.NoError(t, err)
		require.ErrorIs(t, outcomes[0].Broken, sandbox.ErrInfrastructure)
		require.ErrorContains(t, outcomes[0].Broken, "neither the call nor one of its limits explains")
		require.Equal(t, "1", outcomes[1].Value)
		require.EqualValues(t, 4, kills.Load(), "each of two attempts runs it twice")
	})
}

// suicides cause the SIGKILL of their own process. Each of them is the program's own failure and not breakage.
var suicides = []struct{ name, code string }{
	{"kill", "os.kill(os.getpid(), 9)"},
	{"kill of the group", "os.killpg(0, 9)"},
	{"raise", "signal.raise_signal(9)"},
	{"kill of a thread",
		"t = threading.Thread(target=time.sleep, args=(60,), daemon=True)\nt.start()\nos.kill(t.native_id, 9)"},
	{"kill by a thread", "threading.Thread(target=os.kill, args=(os.getpid(), 9)).start()"},
	{"tkill", "LIBC.syscall(TKILL, threading.get_native_id(), 9)"},
	{"rt_sigqueueinfo",
		"info = ctypes.create_string_buffer(128)\nctypes.c_int.from_buffer(info, 8).value = -1\n" +
			"LIBC.syscall(QUEUE, os.getpid(), 9, info)"},
	{"pidfd", "LIBC.syscall(SEND, LIBC.syscall(OPEN, os.getpid(), 0), 9, None, 0)"},
	{"a child's kill", "mine = os.getpid()\nif os.fork() == 0:\n    os.kill(mine, 9)\n    os._exit(0)"},
	{"a child's kill of all", "if os.fork() == 0:\n    os.kill(-1, 9)\n    os._exit(0)"},
	{"a grandchild's kill",
		"mine = os.getpid()\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: os.kill(mine, 9)\n" +
			"    os._exit(0)"},
	{"a child's last signal", "if LIBC.syscall(CLONE, 9, 0, 0, 0, 0) == 0: os._exit(0)"},
	{"a timer",
		"event = (ctypes.c_int * 16)(0, 0, 9, 0)\ntimer = ctypes.c_int()\n" +
			"if LIBC.syscall(TIMER, 0, event, ctypes.byref(timer)) == 0:\n" +
			"    LIBC.syscall(ARM, timer, 0, (ctypes.c_long * 4)(0, 0, 0, 1000), None)"},
	{"a lowered CPU limit",
		"resource.setrlimit(resource.RLIMIT_CPU, (0, 0))\nend = time.process_time() + .2\n" +
			"while time.process_time() < end: pass"},
	{"a lowered CPU limit, slept away",
		"resource.setrlimit(resource.RLIMIT_CPU, (0, 0))\nfor _ in range(200): time.sleep(.001)"},
}

// suicide returns the program. If the kill is refused, the program fails in another recognisable way.
func suicide(code string) string {
	numbers := fmt.Sprintf("TKILL, QUEUE, SEND, OPEN, CLONE, TIMER, ARM = %d, %d, %d, %d, %d, %d, %d\n",
		unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_OPEN, unix.SYS_CLONE,
		unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME)
	return "import ctypes, os, resource, signal, threading, time\nLIBC = ctypes.CDLL(None)\n" + numbers + code +
		"\ntime.sleep(.2)\nos._exit(3)"
}

func TestSuicidesAreVerdicts(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		for _, s := range suicides {
			t.Run(s.name, func(t *testing.T) {
				forks := e.Stats().Forks
				got := run(t, e, suicide(s.code))
				require.Contains(t, []sandbox.Status{sandbox.StatusKilled, sandbox.StatusRuntime}, got.Status,
					got.Stderr)
				require.Equal(t, forks+1, e.Stats().Forks, "it is not run again")
			})
		}
	})
}

// If the parent has already decided on a verdict, it does not matter whether the zygote reports the call's end in time.
// A call could delay that report by leaving many processes to be killed.
func TestACallBeyondItsLimitsHasItsVerdictWithoutItsZygote(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_SANDBOX", "test-sandbox")
	e := open(t, Options{Workers: 1, MinTier: sandbox.TierRlimits})
	for _, c := range []struct {
		code   string
		limits sandbox.Limits
		want   sandbox.Status
	}{
		{held + "time.sleep(3600)", sandbox.Limits{Wall: 3 * time.Second}, sandbox.StatusTimeoutWall},
		{held + "print('x' * 10000, flush=True)\ntime.sleep(3600)", sandbox.Limits{Wall: hangs, OutputBytes: 8 << 10},
			sandbox.StatusOutputLimit},
	} {
		t.Run(string(c.want), func(t *testing.T) {
			victim := e.peek().bare()
			onCall(t, func(zygote, call int) {
				_ = unix.Kill(zygote, unix.SIGSTOP)
				release(call)
			})
			forks := e.Stats().Forks
			require.Equal(t, c.want, runAll(t, e, sandbox.Call{Code: c.code, Limits: c.limits})[0].Status)
			require.Equal(t, forks+1, e.Stats().Forks, "it is not run again")
			require.Equal(t, "2", run(t, e, "1 + 1").Value)
			require.NotSame(t, victim, e.peek().bare())
		})
	}
}

// Files that do not fit, and more files to collect than a process may have open, are the call's own failure.
func TestFilesThatDoNotFitAreVerdicts(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		zygote := e.peek().bare()
		clash := []sandbox.File{{Name: "a", Content: []byte("x")}, {Name: "a/b", Content: []byte("x")}}
		got := runAll(t, e, sandbox.Call{Code: "1", Files: clash})[0]
		require.Equal(t, sandbox.StatusRuntime, got.Status)
		long := sandbox.Call{Language: sandbox.Bash, Code: "echo " + strings.Repeat("x", 10_000),
			Limits: sandbox.Limits{FileBytes: 4096}}
		if got, err := e.Run(t.Context(), []sandbox.Call{long}); !errors.Is(err, sandbox.ErrBadCall) { // no bash here
			require.NoError(t, err)
			require.Equal(t, sandbox.StatusFileLimit, got[0].Status)
		}
		var names []string
		for n := range 200 {
			names = append(names, fmt.Sprint(n))
		}
		many := runAll(t, e, sandbox.Call{Code: "for n in range(200): open(str(n), 'w').write(str(n))",
			Collect: names})[0]
		require.Len(t, many.Files, 200)
		require.Equal(t, "199", string(many.Files[199].Content))
		require.Same(t, zygote, e.peek().bare())
	})
}

// Tests what distinguishes a SIGKILL from outside.
func TestForeignKills(t *testing.T) {
	sigkilled := reply{wait: signalled(unix.SIGKILL)}
	limit := sigkilled
	limit.flags = flagCPULimit
	for _, c := range []struct {
		name string
		o    outcome
		want bool
	}{
		{"nothing explains it", outcome{reply: sigkilled}, true},
		{"the parent's own", outcome{reply: sigkilled, cause: causeWall}, false},
		{"the group's memory", outcome{reply: sigkilled, memory: true}, false},
		{"the code asked for it", outcome{reply: sigkilled, own: true}, false},
		{"a CPU limit", outcome{reply: limit}, false},
		{"another signal", outcome{reply: reply{wait: signalled(unix.SIGTERM)}}, true},
		{"another that the code asked for", outcome{reply: reply{wait: signalled(unix.SIGTERM)}, own: true}, false},
		{"a fault", outcome{reply: reply{wait: signalled(unix.SIGSEGV)}}, false},
		{"an exit", outcome{reply: reply{wait: exited(137)}}, false},
	} {
		require.Equal(t, c.want, c.o.fromOutside(), c.name)
	}
	require.Equal(t, sandbox.StatusOutOfMemory,
		outcome{reply: sigkilled, memory: true}.verdict(sandbox.DefaultLimits).Status)
	lost, judged := ending{gone: true, wait: &sigkilled.wait}.verdict()
	require.False(t, judged, "%v", lost)
	for _, e := range []ending{{gone: true, wait: &sigkilled.wait, own: true}, {gone: true, memory: true},
		{gone: true, wait: &sigkilled.wait, memory: true}} {
		_, judged := e.verdict()
		require.True(t, judged)
	}
}

// The same for cells: the next cell finds that the session has ended itself.
func TestSuicidesOfSessionsAreVerdicts(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_SANDBOX", "test-sandbox")
	everySession(t, func(t *testing.T, s *Sessions) {
		for _, suicidal := range suicides {
			t.Run(suicidal.name, func(t *testing.T) {
				one := newSessionOf(t, s, quick)
				got := cell(t, one, suicide(suicidal.code))
				require.Contains(t, []sandbox.Status{sandbox.StatusKilled, sandbox.StatusRuntime}, got.Status,
					got.Stderr)
				// Otherwise the kill was refused.
				if _, err := one.Run(t.Context(), sandbox.Call{Code: "1"}); err != nil {
					require.ErrorIs(t, err, sandbox.ErrSessionEnded)
				}
			})
		}
		waiter := newSessionOf(t, s, quick)
		require.Equal(t, sandbox.StatusOK,
			cell(t, waiter,
				"import os, threading\ndef end():\n    try: os.kill(os.getpid(), 9)\n    finally: os._exit(1)\n"+
					"threading.Timer(.1, end).start()").Status)
		<-waiter.gone
		_, err := waiter.Run(t.Context(), sandbox.Call{Code: "1"})
		require.ErrorIs(t, err, sandbox.ErrSessionEnded, "also if a thread kills it between cells")
	})
}

func TestACellKilledFromOutsideIsBreakage(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		one := newSessionOf(t, s, quick)
		onCell(t, one, func() { _ = unix.Kill(interpreterOf(one), unix.SIGKILL) })
		_, err := one.Run(context.Background(), sandbox.Call{Code: held})
		require.ErrorIs(t, err, sandbox.ErrSessionLost)
		require.NotErrorIs(t, err, sandbox.ErrSessionEnded)
	})
}

// greedy uses up memory that no process maps. Each of its children touches pages of shared memory and unmaps them. The
// pages stay charged to the group, and the zygote or the fork server is the largest process there.
const greedy = `import ctypes, mmap, os, time
LIBC = ctypes.CDLL(None)
def take(size):
    block = mmap.mmap(-1, size)
    at = ctypes.addressof(ctypes.c_char.from_buffer(block))
    for start in range(0, size, 4 << 20):
        ctypes.memset(at + start, 1, min(4 << 20, size - start))
        LIBC.madvise(ctypes.c_void_p(at), ctypes.c_size_t(start + (4 << 20)), 4)
    return block
kept = []
for n in range(28):
    pid = os.fork()
    if pid == 0:
        kept.append(take(100 << 20))
        time.sleep(60)
        os._exit(0)
time.sleep(20)
`

// shrink lowers the limit of a memory group, so that the test needs less memory than a call may use.
func shrink(t *testing.T, folder string) {
	t.Helper()
	for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err == nil {
			require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(fmt.Sprint(700<<20)), 0))
			return
		}
	}
	t.Fatal("no limit in " + folder)
}

// A call that gets its zygote killed for memory has run out of memory. The next call gets another zygote.
func TestACallThatGetsItsZygoteKilledForMemoryIsToBlame(t *testing.T) {
	e := strongest(t)
	folder := e.peek().bare().joined.of("memory")
	if folder == "" {
		t.Skip("no memory groups can be made")
	}
	shrink(t, folder)
	forks, victim := e.Stats().Forks, e.peek().bare()
	// The zygote is the largest process, as one with numpy or sympy would be. The call's processes are smaller.
	go func() {
		for len(children(victim.command.Process.Pid)) == 0 {
			time.Sleep(time.Millisecond)
		}
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", victim.command.Process.Pid), []byte("900"), 0)
	}()
	got := run(t, e, greedy)
	require.Equal(t, sandbox.StatusOutOfMemory, got.Status, got.Stderr)
	require.Equal(t, forks+1, e.Stats().Forks, "it is not run again")
	require.Equal(t, "2", run(t, e, "1 + 1").Value)
	require.NotSame(t, victim, e.peek().bare(), "the zygote was killed")
}

// Among the sessions of one fork server, only the one that used up its memory is to blame. The others continue.
func TestASessionThatRunsOutOfMemoryIsToBlame(t *testing.T) {
	s := openSessions(t, Options{Tier: sandbox.TierFull})
	greedySession, other := newSessionOf(t, s, quick), newSessionOf(t, s, quick)
	if greedySession.memory == "" {
		t.Skip("no memory groups can be made")
	}
	require.Equal(t, fine("", ""), cell(t, other, "x = 7"))
	shrink(t, greedySession.memory)
	got := cell(t, greedySession, strings.Replace(greedy, "time.sleep(20)",
		"kept.append(bytearray(100 << 20))\ntime.sleep(20)", 1))
	require.Equal(t, sandbox.StatusOutOfMemory, got.Status, got.Stderr)
	_, err := greedySession.Run(t.Context(), sandbox.Call{Code: "1"})
	require.ErrorIs(t, err, sandbox.ErrSessionEnded)
	require.Equal(t, fine("", "7"), cell(t, other, "x"))
	require.False(t, other.server.broken())
}

// Tests the kernel's files in both versions.
func TestOutOfMemoryCounts(t *testing.T) {
	folder := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	_, err := countOutOfMemory(folder)
	require.Error(t, err)
	require.False(t, outOfMemory{5, 5}.since(countBefore(folder)), "a kernel that does not count tells nothing")
	put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
	put("memory.failcnt", "17\n")
	n, err := countOutOfMemory(folder)
	require.NoError(t, err)
	require.Equal(t, outOfMemory{kills: 3, limit: 17}, n)
	put("memory.events.local", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n")
	n, err = countOutOfMemory(folder)
	require.NoError(t, err)
	require.Equal(t, outOfMemory{kills: 1, limit: 2}, n)
	put("memory.events.local", "oom 2\n")
	_, err = countOutOfMemory(folder)
	require.ErrorContains(t, err, "oom_kill and oom are not there")
	for _, c := range []struct {
		before, now outOfMemory
		out         bool
	}{
		{outOfMemory{1, 1}, outOfMemory{2, 2}, true},
		{outOfMemory{1, 1}, outOfMemory{2, 1}, false}, // the machine's memory, not the group's
		{outOfMemory{1, 1}, outOfMemory{1, 2}, false}, // no process was killed
	} {
		require.Equal(t, c.out, c.now.since(c.before))
	}
}
