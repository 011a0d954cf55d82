package zygote

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
)

// everyTier runs a test in each tier that the machine allows.
func everyTier(t *testing.T, test func(*testing.T, *Executor)) {
	for _, tier := range sandbox.Tiers() {
		t.Run(string(tier), func(t *testing.T) { test(t, open(t, Options{Tier: tier, Workers: 1})) })
	}
}

func TestEnvironmentAndFolderAreEmpty(t *testing.T) {
	t.Setenv("ROPEWALK_SECRET", "hunter2")
	everyTier(t, func(t *testing.T, e *Executor) {
		require.Equal(t, "{} []\n", run(t, e, "import os\nprint(dict(os.environ), os.listdir('.'))").Stdout)
	})
}

func TestNoDescriptorIsInherited(t *testing.T) {
	const code = `import os
found = []
for fd in range(1024):
    try:
        os.fstat(fd)
        found.append(fd)
    except OSError:
        pass
found`
	everyTier(t, func(t *testing.T, e *Executor) {
		require.Equal(t, "[0, 1, 2]", run(t, e, code).Value)
	})
}

func TestNothingIsLeftToTheNextCall(t *testing.T) {
	const leave = `import os, random
open('left', 'w').write('x')
os.mkdir('folder')
open('folder/deep', 'w').write('x')
os.symlink('/usr', 'link')
try:
    os.chmod('folder', 0)
    os.chmod('.', 0o500)
except PermissionError:
    pass  # refused where there is no mount namespace
random.seed(7)
import string
string.digits = 'changed'`
	const look = "import os, string\n[os.listdir('.'), oct(os.stat('.').st_mode), string.digits]"
	everyTier(t, func(t *testing.T, e *Executor) {
		clean := run(t, e, look)
		require.Equal(t, sandbox.StatusOK, run(t, e, leave).Status)
		require.Equal(t, clean.Value, run(t, e, look).Value)
	})
}

func TestFolderAndFilesAreBounded(t *testing.T) {
	e := strongest(t)
	require.Equal(t, sandbox.StatusFileLimit, run(t, e, "open('a', 'wb').write(b'x' * (17 << 20))").Status)
	require.Equal(t, sandbox.StatusFileLimit, run(t, e, "for i in range(5000): open(str(i), 'w')").Status)
	require.Equal(t, "[]", run(t, e, "import os\nos.listdir('.')").Value)
}

func TestForkedCopiesReportNothing(t *testing.T) {
	e := strongest(t)
	got := run(t, e, "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n'parent' if pid else 'child'")
	require.Equal(t, "'parent'", got.Value)
}

func TestCallsCannotReachTheZygote(t *testing.T) {
	const code = `import os
try:
    os.kill(os.getppid(), 9)
except OSError:
    pass
import time
time.sleep(.05)
'alive'`
	everyTier(t, func(t *testing.T, e *Executor) {
		before := e.peek().bare()
		require.Equal(t, "'alive'", run(t, e, code).Value)
		require.Same(t, before, e.peek().bare())
	})
}

func TestCallsCannotMakeNamespaces(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		require.Equal(t, "-1", run(t, e, "import ctypes\nctypes.CDLL(None).unshare(0x10000000)").Value)
		require.Equal(t, "-1", run(t, e,
			"import ctypes\nctypes.CDLL(None).mount(None, b'/', None, 1 << 18, None)").Value)
	})
}

// bare returns the slot's smallest zygote.
func (s *slot) bare() *process { return s.zygotes[sandbox.PackagesBare] }

// peek returns the slot that the next call of the smallest set will get, without taking it.
func (e *Executor) peek() *slot {
	s := e.slots.take(sandbox.PackagesBare)
	e.slots.give(s)
	return s
}

// processesWith lists the processes of this machine whose command line contains the mark.
func processesWith(t *testing.T, mark string) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, name := range lines {
		// A process may end while this reads it.
		if line, err := os.ReadFile(name); err == nil && bytes.Contains(line, []byte(mark)) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func TestCloseLeavesNoProcess(t *testing.T) {
	e := open(t, Options{Tier: sandbox.TierFull, Workers: 3}) // other tiers refuse new processes
	var pids []int
	for _, s := range e.slots.all() {
		if z := s.bare(); z != nil {
			pids = append(pids, z.command.Process.Pid)
		}
	}
	require.Len(t, pids, 3, "a zygote for each worker")
	ended := make(chan error, 1)
	const mark = "86397.75"
	go func() {
		_, err := e.Run(t.Context(), make16("import subprocess\nsubprocess.run(['/bin/sleep', '"+mark+"'])"))
		ended <- err
	}()
	until(t, func() bool { return len(processesWith(t, mark)) > 0 })
	require.NoError(t, e.Close())
	require.ErrorIs(t, <-ended, sandbox.ErrInfrastructure)
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	require.Empty(t, processesWith(t, mark))
}

func TestCloseRemovesFolders(t *testing.T) {
	dir := t.TempDir()
	e := open(t, Options{Tier: sandbox.TierRlimits, Workers: 2, Dir: dir})
	require.NoError(t, e.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestKilledParentLeavesNoProcess runs itself as the parent that is killed.
func TestKilledParentLeavesNoProcess(t *testing.T) {
	const mark, role = "86395.5", "ROPEWALK_TEST_VICTIM"
	if os.Getenv(role) != "" {
		e := open(t, Options{Workers: 2})
		fmt.Println("victim is open")
		// No call waits for another, so none is set aside and frozen.
		_, _ = e.Run(t.Context(), make16("import subprocess\nsubprocess.run(['/bin/sleep', '" + mark + "'])")[:2])
		return
	}
	strongest(t) // or skip
	victim := exec.Command(os.Args[0], "-test.run", "^TestKilledParentLeavesNoProcess$")
	victim.Env = append(os.Environ(), role+"=1")
	out, err := victim.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, victim.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "victim is open")
	until(t, func() bool { return len(processesWith(t, mark)) > 0 })
	require.NoError(t, victim.Process.Kill())
	require.Error(t, victim.Wait())
	until(t, func() bool { return len(processesWith(t, mark)) == 0 })
}

// A service manager that forbids core dumps does not keep the sandbox from starting.
func TestCoreDumpsMayBeForbidden(t *testing.T) {
	const variable = "ROPEWALK_TEST_NO_CORES"
	if os.Getenv(variable) != "" {
		everyTier(t, func(t *testing.T, e *Executor) { require.Equal(t, "42\n", run(t, e, "print(42)").Stdout) })
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", `ulimit -Hc 0 && exec "$0" -test.run '^TestCoreDumpsMayBeForbidden$' -test.v`, self)
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), "FAIL")
}
