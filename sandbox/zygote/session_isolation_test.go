package zygote

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
)

func TestManySessionsAreNotMixedUp(t *testing.T) {
	s := openSessions(t, Options{})
	const sessions, cells = 50, 4
	var all sync.WaitGroup
	for i := range sessions {
		all.Go(func() {
			one, err := s.OpenSession(context.Background(), "", quick)
			if err != nil {
				t.Errorf("session %d: %v", i, err)
				return
			}
			defer one.Close()
			for n := range cells {
				code := fmt.Sprintf("print('session', %d)\nopen('n', 'a').write('x')\nimport os\n"+
					"who = %d if 'who' not in globals() else who\n(who, os.stat('n').st_size)", i, i)
				got, err := one.Run(context.Background(), sandbox.Call{Code: code})
				if want := fmt.Sprintf("(%d, %d)", i, n+1); err != nil || got.Value != want ||
					got.Stdout != fmt.Sprintf("session %d\n", i) {
					t.Errorf("session %d: got %+v, %v, want %s", i, got, err, want)
				}
			}
		})
	}
	all.Wait()
}

// attacks print everything that they can reach. Each must print nothing.
var attacks = []struct{ name, code string }{
	{"mount",
		"import ctypes\nlibc = ctypes.CDLL(None)\n" +
			"if libc.mount(b'x', b'.', b'tmpfs', 0, None) == 0: print('mounted')\n" +
			"if libc.umount2(b'/sandbox', 2) == 0: print('unmounted')"},
	{"namespaces",
		"import ctypes\nlibc = ctypes.CDLL(None)\n" +
			"for flag in (0x10000000, 0x20000000, 0x20000, 0x8000000, 0x40000000, 0x4000000, 0x2000000):\n" +
			"    if libc.unshare(flag) == 0: print('unshared', hex(flag))"},
	{"namespaces by clone",
		"import ctypes, os\nfor number in (56, 220):\n    for flag in (0x10000000, 0x20000000, 0x20000):\n" +
			"        pid = ctypes.CDLL(None).syscall(number, flag | 17, 0, 0, 0, 0) if os.uname().machine == " +
			"('x86_64' if number == 56 else 'aarch64') else -1\n        if pid == 0: os._exit(0)\n" +
			"        if pid > 0: print('cloned', hex(flag))"},
	{"ptrace",
		"import ctypes\nfor pid in range(1, 20):\n" +
			"    if ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0: print('traced', pid)"},
	{"init's limits",
		"import resource\ntry:\n    resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))\n    print('limited')\n" +
			"except OSError: pass"},
	{"sockets",
		"import socket\nfor family in range(1, 46):\n    for kind in (1, 2, 3, 5):\n        try:\n" +
			"            socket.socket(family, kind)\n" +
			"            print('socket', family)\n        except OSError: pass"},
	{"descriptors",
		"import os\nfor fd in range(4, 1024):\n    try:\n        os.fstat(fd)\n        print('open', fd)\n" +
			"    except OSError: pass"},
	{"System V shared memory", "import ctypes\nif ctypes.CDLL(None).shmget(1, 4096, 0o1666) >= 0: print('shared')"},
	{"chroot", "import os\ntry:\n    os.chroot('.')\n    print('chroot')\nexcept OSError: pass"},
	{"host name", "import socket\ntry:\n    socket.sethostname('owned')\n    print('named')\nexcept OSError: pass"},
	{"capabilities",
		"import ctypes\n" +
			"header, data = ctypes.create_string_buffer(b'\\x22\\x05\\x08\\x20' + bytes(4), 8), " +
			"ctypes.create_string_buffer(24)\nctypes.CDLL(None).capget(header, data)\n" +
			"if any(data.raw[:8]) or any(data.raw[12:20]): print(data.raw)"},
	{"privileges",
		"import os\nfor call in (os.setuid, os.setgid):\n    try:\n        call(0)\n        print('root')\n" +
			"    except OSError: pass"},
}

func TestAttacksFromASession(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		for _, a := range attacks {
			t.Run(a.name, func(t *testing.T) {
				one := newSessionOf(t, s, sandbox.Limits{})
				require.Equal(t, fine("", ""), cell(t, one, a.code))
			})
		}
	})
}

func TestSessionsCannotReachEachOther(t *testing.T) {
	for _, tier := range []sandbox.Tier{sandbox.TierFull, sandbox.TierLandlock} {
		t.Run(string(tier), func(t *testing.T) {
			s := openSessions(t, Options{Tier: tier})
			victim, attacker := newSessionOf(t, s, quick), newSessionOf(t, s, quick)
			require.Equal(t, sandbox.StatusOK,
				cell(t, victim, "import os\nx = 1\nopen('secret', 'w').write('s')").Status)
			folder := strings.Trim(cell(t, victim, "os.getcwd()").Value, "'")
			if tier == sandbox.TierFull {
				require.Equal(t, workFolder, folder)
			}
			got := cell(t, attacker, fmt.Sprintf(`import os, signal
found = []
for path in [%q, %q + '/secret', os.path.dirname(%q) + '/1/secret', os.path.dirname(%q) + '/2/secret']:
    try:
        found.append(os.listdir(path) if os.path.isdir(path) else open(path).read())
    except OSError: pass
for pid in list(range(1, 40)) + [-1]:
    if pid != os.getpid():
        try: os.kill(pid, signal.SIGKILL)
        except OSError: pass
[f for f in found if f]`, folder, folder, folder, folder))
			require.Equal(t, fine("", "[]"), got)
			require.Equal(t, fine("", "1"), cell(t, victim, "x"))
			require.Equal(t, fine("", "'s'"), cell(t, victim, "open('secret').read()"))
			require.Equal(t, fine("", "1"), cell(t, attacker, "1"), "it cannot signal its own init either")
			require.False(t, victim.server.broken())
		})
	}
}

// forgeries are packets that code can write to its session's socket.
var forgeries = []struct {
	name, code string
	want       sandbox.Status
}{
	{"short", "os.write(3, b'x')", sandbox.StatusKilled},
	{"empty", "peer.send(b'')", sandbox.StatusKilled},
	{"another cell's", "os.write(3, b'.' + bytes(8) + b'v' + bytes(8) + b'forged')", sandbox.StatusKilled},
	{"huge", "os.write(3, b'.' + bytes(100000))", sandbox.StatusKilled},
	{"many", "while True: os.write(3, b't' + bytes(8) + b'x' * 1000)", sandbox.StatusKilled},
	{"unknown kind", "os.write(3, b'?' + nonce)", sandbox.StatusKilled},
	{"unknown letter", "os.write(3, b'.' + nonce + b'Q')", sandbox.StatusKilled},
	{"an end without a peak", "os.write(3, b'.' + nonce + b'vmine')", sandbox.StatusKilled},
	{"a file that was not requested", "os.write(3, b'f' + nonce + bytes(4) + b'x')", sandbox.StatusKilled},
	{"a file's number out of range", "os.write(3, b'f' + nonce + b'\\xff' * 4 + b'x')", sandbox.StatusKilled},
	{"endless text", "while True: os.write(3, b't' + nonce + b'x' * 1000)", sandbox.StatusOutputLimit},
	{"its own value", "os.write(3, b'.' + nonce + b'v' + b'\\xff' * 8 + b'mine')\ntime.sleep(.1)", sandbox.StatusOK},
}

// grip finds the number of the running cell in the memory of the interpreter.
const grip = `import os, socket, sys, time
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, 3)
frame = sys._getframe()
while 'nonce' not in frame.f_locals or frame.f_globals is globals(): frame = frame.f_back
nonce = frame.f_locals['nonce']
`

func TestForgedPacketsHarmTheirOwnCellAlone(t *testing.T) {
	s := openSessions(t, Options{})
	other := newSessionOf(t, s, quick)
	require.Equal(t, sandbox.StatusOK, cell(t, other, "x = 1").Status)
	for _, f := range forgeries {
		t.Run(f.name, func(t *testing.T) {
			one := newSessionOf(t, s, quick)
			got := cell(t, one, grip+f.code)
			require.Equal(t, f.want, got.Status)
			next, err := one.Run(t.Context(), sandbox.Call{Code: "2"})
			if f.want != sandbox.StatusOK {
				require.ErrorIs(t, err, sandbox.ErrSessionEnded)
			} else { // the cell also sends its real answer, which is one answer too many
				require.NoError(t, err)
				require.Equal(t, sandbox.StatusKilled, next.Status)
			}
			require.Equal(t, fine("", "1"), cell(t, other, "x"))
		})
	}
}

// Calls leave their records in memory that they share with the zygote. Sessions must not share it.
func TestSessionsShareNoMemory(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		one := newSessionOf(t, s, quick)
		require.Equal(t, sandbox.StatusRuntime, cell(t, one, grip+"frame.f_globals['BEGUN'][0]").Status)
		got := cell(t, one, "frame.f_globals['BOARD'][0]")
		require.Equal(t, sandbox.Result{Status: sandbox.StatusKilled, ExitCode: -1, Signal: "SIGSEGV"}, got)
	})
}

func TestForksOfASession(t *testing.T) {
	s := openSessions(t, Options{Tier: sandbox.TierFull})
	one, other := newSessionOf(t, s, quick), newSessionOf(t, s, quick)
	got := cell(t, one,
		"import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('parent' if pid else 'child', flush=True)\n"+
			"pid > 0")
	require.Equal(t, fine("child\nparent\n", "True"), got)
	bomb := "import os, time\nn = 0\ntry:\n    while True:\n        if os.fork() == 0: time.sleep(60)\n" +
		"        n += 1\nexcept BlockingIOError: pass\nn"
	require.Equal(t, fine("", "30"), cell(t, one, bomb), "31 processes with the first")
	require.Equal(t, sandbox.StatusProcessLimit, cell(t, one, "os.fork()").Status)
	require.Equal(t, fine("", "30"), cell(t, other, bomb), "each session has its own count")
	require.NoError(t, other.Close())
	require.Equal(t, fine("", "1"), cell(t, one, "1"))
}

func TestWorkBetweenCells(t *testing.T) {
	s := openSessions(t, Options{})
	busy := newSessionOf(t, s, sandbox.Limits{CPU: time.Second})
	require.Equal(t, sandbox.StatusOK, cell(t, busy,
		"import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin).start()").Status)
	<-busy.gone // otherwise a thread that a cell left runs for ever
	_, err := busy.Run(t.Context(), sandbox.Call{Code: "1"})
	require.ErrorIs(t, err, sandbox.ErrSessionEnded)

	waiter := newSessionOf(t, s, quick)
	require.Equal(t, fine("", ""), cell(t, waiter,
		"import threading\nready = threading.Event()\ndef say():\n    ready.wait()\n    print('late')\n"+
			"t = threading.Thread(target=say)\nt.start()"))
	require.Equal(t, fine("late\n", ""), cell(t, waiter, "ready.set()\nt.join()"))
}

// The same cells have the same results in sessions of different fork servers, as calls do in different zygotes.
func TestSessionResultsDependOnTheCellsAlone(t *testing.T) {
	first, second := openSessions(t, Options{Tier: sandbox.TierFull}), openSessions(t, Options{Tier: sandbox.TierFull})
	var want []sandbox.Result
	for i, s := range []*Sessions{first, first, second} {
		one := newSessionOf(t, s, quick)
		var got []sandbox.Result
		for _, code := range alike {
			if !strings.Contains(code, "while True") {
				got = append(got, cell(t, one, code))
			}
		}
		if i == 0 {
			want = got
		}
		require.Equal(t, want, got)
	}
}

func TestKilledForkServerLosesItsSessions(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		idle, busy := newSessionOf(t, s, quick), newSessionOf(t, s, quick)
		ended := make(chan error, 1)
		go func() {
			_, err := busy.Run(context.Background(), sandbox.Call{Code: held})
			ended <- err
		}()
		until(t, func() bool { return begun(interpreterOf(busy)) })
		require.NoError(t, idle.server.command.Process.Kill())
		err := <-ended
		require.ErrorIs(t, err, sandbox.ErrSessionLost)
		require.NotErrorIs(t, err, sandbox.ErrSessionEnded)
		_, err = idle.Run(t.Context(), sandbox.Call{Code: "1"})
		require.ErrorIs(t, err, sandbox.ErrSessionLost)
		require.NotErrorIs(t, err, sandbox.ErrSessionEnded)
		require.Equal(t, fine("", "1"), cell(t, newSessionOf(t, s, quick), "1"), "another one takes its place")
	})
}

func TestKilledInitLosesItsSession(t *testing.T) {
	one := newSessionOf(t, openSessions(t, Options{Tier: sandbox.TierFull}), quick)
	onCell(t, one, func() {
		one.mu.Lock()
		defer one.mu.Unlock()
		one.signal() // like a kill from outside: the session knows of no cause
	})
	_, err := one.Run(t.Context(), sandbox.Call{Code: held})
	require.ErrorIs(t, err, sandbox.ErrSessionLost)
	require.NotErrorIs(t, err, sandbox.ErrSessionEnded)
}

// openDescriptors returns how many descriptors this process has open.
func openDescriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(names)
}

func TestClosedSessionsLeaveNothing(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		dir := s.home.scratch
		before, pid := openDescriptors(t), 0
		for i := range 20 {
			one := newSessionOf(t, s, quick)
			pid = one.server.command.Process.Pid
			cell(t, one,
				"import threading, time\nopen('left', 'w').write('x')\n"+
					"threading.Thread(target=time.sleep, args=(60,)).start()")
			if i%2 == 0 {
				cell(t, one, "import os\nos._exit(1)")
			}
			require.NoError(t, one.Close())
			require.NoError(t, one.Close())
			_, err := one.Run(t.Context(), sandbox.Call{Code: "1"})
			require.ErrorIs(t, err, sandbox.ErrSessionLost)
		}
		require.Empty(t, children(pid))
		require.LessOrEqual(t, openDescriptors(t), before+2)
		names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		require.NoError(t, err)
		require.LessOrEqual(t, len(names), 8, "the fork server's own descriptors")
		if dir != "" {
			left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
			require.NoError(t, err)
			require.Empty(t, left)
		}
		require.NoError(t, s.Close())
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
		_, err = s.OpenSession(t.Context(), "", quick)
		require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	})
}

func TestCloseEndsACellThatRuns(t *testing.T) {
	one := newSessionOf(t, openSessions(t, Options{}), quick)
	ended := make(chan error, 1)
	go func() {
		_, err := one.Run(context.Background(), sandbox.Call{Code: held})
		ended <- err
	}()
	until(t, func() bool { return begun(interpreterOf(one)) })
	require.NoError(t, one.Close())
	require.ErrorIs(t, <-ended, sandbox.ErrSessionLost)
}
