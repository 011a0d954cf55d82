package zygote

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
)

// during runs code up to its held, calls act, and lets the code end.
func during(t *testing.T, e *Executor, code string, act func()) {
	t.Helper()
	var call int
	there, ended := make(chan struct{}), make(chan error, 1)
	onCall(t, func(_, pid int) {
		if call == 0 {
			call = pid
			close(there)
		}
	})
	go func() {
		got, err := e.Run(context.Background(), []sandbox.Call{{Code: code, Limits: sandbox.Limits{Wall: hangs}}})
		if err == nil && got[0].Status != sandbox.StatusOK {
			err = fmt.Errorf("%s: %s", got[0].Status, got[0].Stderr)
		}
		ended <- err
	}()
	select {
	case <-there:
	case err := <-ended:
		t.Fatal("it did not begin: ", err)
	}
	act()
	release(call)
	require.NoError(t, <-ended)
}

// greedyForPipes takes as many pages of pipes as it can get, with all processes that a call may have.
const greedyForPipes = `import errno, fcntl, os, time
ready, done = os.pipe()
kept = []
def pipe(name):
    try:
        os.mkfifo(name)
        return [os.open(name, os.O_RDWR)]  # a pipe for each descriptor
    except OSError as error:
        if error.errno == errno.EMFILE: raise
    return os.pipe()
def fill(who):
    try:
        while True:
            kept.extend(pipe("%d-%d" % (who, len(kept))))
            try: fcntl.fcntl(kept[-1], 1031, 1 << 20)
            except OSError: pass
    except OSError: pass
for who in range(28):
    if os.fork() == 0:
        fill(who)
        os.write(done, b'x')
        time.sleep(300)
for _ in range(28): os.read(ready, 1)
fill(28)
`

// greedyForSignals queues as many signals as it can.
const greedyForSignals = `import ctypes, os, signal
LIBC = ctypes.CDLL(None)
signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 64))
while LIBC.sigqueue(os.getpid(), 40, None) == 0: pass
`

// What one call takes of what the kernel counts by user, its neighbours and the host do not lack.
func TestNeighboursKeepWhatIsCountedByUser(t *testing.T) {
	e := open(t, Options{Tier: sandbox.TierFull, Workers: 3})
	t.Run("pages of pipes", func(t *testing.T) {
		if rangeOfUsers() == 0 {
			t.Skip("this process cannot give users to interpreters")
		}
		during(t, e, greedyForPipes+held, func() {
			require.Equal(t, "65536", run(t, e, "import fcntl, os\nfcntl.fcntl(os.pipe()[1], 1032)").Value)
		})
	})
	t.Run("signals", func(t *testing.T) {
		during(t, e, greedyForSignals+held, func() {
			const code = "import ctypes, os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [41])\n" +
				"ctypes.CDLL(None).sigqueue(os.getpid(), 41, None), 41 in signal.sigpending()"
			require.Equal(t, "(0, True)", run(t, e, code).Value)
		})
	})
}

// The same for sessions of one fork server.
func TestSessionsKeepWhatIsCountedByUser(t *testing.T) {
	s := openSessions(t, Options{Tier: sandbox.TierFull})
	if rangeOfUsers() == 0 {
		t.Skip("this process cannot give users to sessions")
	}
	greedySession, other := newSessionOf(t, s, quick), newSessionOf(t, s, quick)
	require.Equal(t, sandbox.StatusOK, cell(t, greedySession, greedyForPipes).Status)
	require.Equal(t, fine("", "65536"), cell(t, other, "import fcntl, os\nfcntl.fcntl(os.pipe()[1], 1032)"))
	require.Equal(t, fine("", "1000"), cell(t, other, "os.getuid()"))
}

// The host's files are there for others while a call does with them what it can.
func TestTheHostsFilesAreNotLocked(t *testing.T) {
	const code = `import fcntl, os
for path in (os.__file__, "/usr/bin/env", "/dev/null"):
    file = open(path)
    for lock in (lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: fcntl.lockf(file, fcntl.LOCK_SH),
                 lambda: fcntl.fcntl(file, 37, b"\0" * 32)):
        try: lock()
        except OSError: pass
    globals().setdefault("kept", []).append(file)
print(os.__file__)
`
	everyTier(t, func(t *testing.T, e *Executor) {
		module := strings.TrimSpace(run(t, e, "import os\nprint(os.__file__)").Stdout)
		during(t, e, code+held, func() {
			for _, path := range []string{module, "/usr/bin/env", "/dev/null"} {
				file, err := os.Open(path)
				require.NoError(t, err)
				require.NoError(t, unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), path)
				lock := unix.Flock_t{Type: unix.F_WRLCK}
				require.NoError(t, unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock))
				require.EqualValues(t, unix.F_UNLCK, lock.Type, path)
				require.NoError(t, file.Close())
			}
		})
	})
}

// A database in a file works, although its locks are not taken.
func TestADatabaseInAFile(t *testing.T) {
	const code = "import sqlite3\nwith sqlite3.connect('data.db') as data:\n    data.execute('create table t (x)')\n" +
		"    data.execute('insert into t values (42)')\n" +
		"sqlite3.connect('data.db').execute('select x from t').fetchall()"
	everyTier(t, func(t *testing.T, e *Executor) { require.Equal(t, "[(42,)]", run(t, e, code).Value) })
}

// The work folder tells nothing about earlier calls, even if they have put everything back.
func TestTheFolderTellsNothing(t *testing.T) {
	const leave = `import fcntl, os, struct
open('a', 'w').close()
os.unlink('a')
folder = os.open('.', os.O_RDONLY)
through = []
for request in (0x40086602, 0x401c5820):
    try: fcntl.ioctl(folder, request, struct.pack('=QQQQ', 0x40, 0, 0, 0)[:28])
    except OSError: continue
    through.append(request)
try: os.utime('.', (TIME, TIME))
except OSError: pass
through`
	const look = `import os
about = os.stat('.')
times = about.st_mtime_ns, about.st_atime_ns
new = os.fstat(os.open('new', os.O_CREAT | os.O_WRONLY)).st_ino
times, about.st_mode, os.listxattr('.'), new if os.getcwd() == '/sandbox' else 0`
	everyTier(t, func(t *testing.T, e *Executor) {
		clean := run(t, e, look)
		require.Equal(t, sandbox.StatusOK, clean.Status, clean.Stderr)
		for _, time := range []string{"0", "9"} { // as before, or another one
			code := strings.ReplaceAll(leave, "TIME", time)
			require.Equal(t, "[]", run(t, e, code).Value)
			require.Equal(t, clean.Value, run(t, e, look).Value)
		}
	})
}
