package zygote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

func TestFilesGoInAndOut(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		got := runAll(t, e, sandbox.Call{
			Code: "text = open('data/in.txt').read()\nopen('out.txt', 'w').write(text * 2)\nimport os\n" +
				"os.mkdir('a')\nopen('a/b.bin', 'wb').write(bytes([0, 255]))\nsorted(os.listdir('.'))",
			Files:   []sandbox.File{{Name: "data/in.txt", Content: []byte("abc")}, {Name: "empty"}},
			Collect: []string{"a/b.bin", "missing", "out.txt", "empty"},
		}, sandbox.Call{Code: "import os\nos.listdir('.')"})
		require.Equal(t, "['a', 'data', 'empty', 'out.txt']", got[0].Value)
		require.Equal(t, []sandbox.File{{Name: "a/b.bin", Content: []byte{0, 255}},
			{Name: "out.txt", Content: []byte("abcabc")}, {Name: "empty", Content: []byte{}}}, got[0].Files)
		require.Equal(t, "[]", got[1].Value)
	})
}

// Links that lead out of the folder, and things that are not files, are not collected.
func TestCollectingFollowsNothing(t *testing.T) {
	const code = `import os
os.symlink('/etc/passwd', 'link')
os.symlink('/', 'root')
os.mkfifo('pipe')
os.mkdir('folder')
os.close(os.open('secret', os.O_CREAT | os.O_WRONLY, 0))
open('real', 'w').write('y')
os.link('real', 'hard')`
	everyTier(t, func(t *testing.T, e *Executor) {
		got := runAll(t, e, sandbox.Call{Code: code,
			Collect: []string{"link", "root/etc/passwd", "pipe", "folder", "secret", "hard"}})[0]
		require.Equal(t, sandbox.StatusOK, got.Status, got.Stderr)
		require.Equal(t, []sandbox.File{{Name: "hard", Content: []byte("y")}}, got.Files)
	})
}

func TestTooMuchCollectedIsAFileLimit(t *testing.T) {
	got := runAll(t, open(t, Options{Workers: 1}),
		sandbox.Call{Code: "open('a', 'wb').write(bytes(9 << 20))", Collect: []string{"a"}})[0]
	require.Equal(t, sandbox.StatusFileLimit, got.Status)
	require.Empty(t, got.Files)
}

func TestALimitOfAFile(t *testing.T) {
	limits := quick
	limits.FileBytes = 1000
	got := runAll(t, open(t, Options{Workers: 1}),
		sandbox.Call{Code: "open('a', 'wb', 0).write(b'x' * 1001)\nopen('a', 'ab', 0).write(b'x')", Limits: limits})[0]
	require.Equal(t, sandbox.StatusFileLimit, got.Status)
}

func TestLongInputs(t *testing.T) {
	e := open(t, Options{Workers: 1})
	long := strings.Repeat("0123456789", 1<<20) // 10 MiB
	got := runAll(t, e,
		sandbox.Call{Code: "import sys\na = sys.stdin.read()\nb = open('f').read()\nlen(a), len(b), a == b",
			Stdin: long, Files: []sandbox.File{{Name: "f", Content: []byte(long)}}},
		sandbox.Call{Code: "x = '" + long[:7<<20] + "'\nlen(x)"})
	require.Equal(t, "(10485760, 10485760, True)", got[0].Value)
	require.Equal(t, "7340032", got[1].Value)
}

func TestBash(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		got := runAll(t, e,
			sandbox.Call{Language: sandbox.Bash, Code: "read x; echo $((x * 2)); echo err >&2; echo kept > out; exit 3",
				Stdin: "21\n", Collect: []string{"out"}},
			sandbox.Call{Language: sandbox.Bash, Code: "echo $PATH $HOME; pwd >/dev/null"},
			sandbox.Call{Language: sandbox.Bash,
				Code: "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"})
		require.Equal(t, sandbox.Result{Status: sandbox.StatusRuntime, ExitCode: 3, Stdout: "42\n", Stderr: "err\n",
			Files: []sandbox.File{{Name: "out", Content: []byte("kept\n")}}, Timing: got[0].Timing}, got[0])
		require.Contains(t, got[1].Stdout, "/usr/local/bin:/usr/bin:/bin ")
		require.Equal(t, sandbox.StatusOutputLimit, got[2].Status)
	})
}

func TestBashMayRunProgramsInTheFullTier(t *testing.T) {
	got := runAll(t, strongest(t), sandbox.Call{Language: sandbox.Bash, Code: "seq 3 | sort -r | paste -sd, -"},
		sandbox.Call{Language: sandbox.Bash, Code: "while :; do :; done"})
	require.Equal(t, "3,2,1\n", got[0].Stdout, got[0].Stderr)
	require.Equal(t, sandbox.StatusTimeoutCPU, got[1].Status)
}

func TestBadCallsAreRefusedAloneByName(t *testing.T) {
	e := open(t, Options{Workers: 1})
	results, err := e.Run(t.Context(), []sandbox.Call{{Code: "1"}, {Code: "\xff"}, {Language: "cobol"},
		{Packages: "fortran"}, {Limits: sandbox.Limits{CPU: -1}}, {Code: "2"}})
	var broken sandbox.CallErrors
	require.ErrorAs(t, err, &broken)
	for i, want := range []string{"", "run call 1: bad call: code is not UTF-8",
		`language "cobol" is not one of python, bash`, `packages "fortran" is not one of bare, numpy, sympy`,
		"limits.cpu is negative", ""} {
		if want == "" {
			require.NoError(t, broken[i])
			continue
		}
		require.ErrorIs(t, broken[i], sandbox.ErrBadCall)
		require.ErrorContains(t, broken[i], want)
	}
	require.Equal(t, "2", results[5].Value)
}

// withPackages opens an executor whose interpreter has numpy and sympy. ROPEWALK_SANDBOX_PYTHON names the interpreter.
func withPackages(t testing.TB) *Executor {
	t.Helper()
	e, err := Open(Options{Python: os.Getenv("ROPEWALK_SANDBOX_PYTHON"), Workers: 1})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		_, err = e.plan.sets.named(sandbox.PackagesSympy)
	}
	if err != nil && os.Getenv("ROPEWALK_REQUIRE_SYMPY") != "" {
		t.Fatalf("ROPEWALK_REQUIRE_SYMPY is set, and %v", err)
	}
	if err != nil {
		t.Skipf("no interpreter with numpy and sympy (name one by ROPEWALK_SANDBOX_PYTHON): %v", err)
	}
	return e
}

// TestInterpreterBehindALink: the folder of an interpreter's packages may be reached through a link, as on machines
// whose home folders are elsewhere.
func TestInterpreterBehindALink(t *testing.T) {
	python := os.Getenv("ROPEWALK_SANDBOX_PYTHON")
	if python == "" {
		t.Skip("ROPEWALK_SANDBOX_PYTHON names no interpreter that a link could lead to")
	}
	folder := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755)) // the calls' user enters it
	link := filepath.Join(folder, "link")
	require.NoError(t, os.Symlink(filepath.Dir(filepath.Dir(python)), link))
	e, err := Open(Options{Python: filepath.Join(link, "bin", filepath.Base(python)), Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.Equal(t, "array([0, 1])", run(t, e, "import numpy\nnumpy.arange(2)").Value)
}

func TestPackagesAreChosenByWhatTheCodeMentions(t *testing.T) {
	e := withPackages(t)
	for _, c := range []struct{ code, set, value string }{
		{"1 + 1", sandbox.PackagesBare, "2"},
		{"import numpy as np\nnp.arange(4)", sandbox.PackagesNumpy, "array([0, 1, 2, 3])"},
		{"from sympy import *\nx = symbols('x')\nsolve(x**2 - 4, x)", sandbox.PackagesSympy, "[-2, 2]"},
		{"import mpmath\nmpmath.mpf(1)", sandbox.PackagesSympy, "mpf('1.0')"},
	} {
		set, err := e.accept(sandbox.Call{Code: c.code})
		require.NoError(t, err)
		require.Equal(t, c.set, set.Name, c.code)
		require.Equal(t, c.value, run(t, e, c.code).Value)
	}
	const random = "import numpy as np\nnp.random.rand()"
	require.Equal(t, run(t, e, random).Value, run(t, e, random).Value)
	require.Equal(t, "4", runAll(t, e, sandbox.Call{Code: "__import__('num' + 'py').int64(4).item()",
		Limits: sandbox.DefaultLimits})[0].Value, "without having it loaded")
}

func TestCustomSets(t *testing.T) {
	e := open(t, Options{Workers: 1, Sets: []PackageSet{{Name: "bare"},
		{Name: "xml", Modules: []string{"xml"}, Warm: "import xml.dom.minidom"},
		{Name: "no", Modules: []string{"no_such_module"}}}, Preload: []string{"xml"}})
	const loaded = "import sys\n'x' + 'ml.dom.minidom' in sys.modules"
	require.Equal(t, "False", run(t, e, loaded).Value)
	require.Equal(t, "True", runAll(t, e, sandbox.Call{Code: loaded, Packages: "xml"})[0].Value)
	_, err := e.Run(t.Context(), []sandbox.Call{{Packages: "no"}})
	require.ErrorContains(t, err, `packages "no" need no_such_module`)
	_, err = Open(Options{Preload: []string{"nothing"}})
	require.ErrorContains(t, err, fmt.Sprintf("preload: bad call: packages %q", "nothing"))
}

// A call may change what a zygote's children share. The next call must not see any of it.
func TestACallsOwnFailureIsNeverTheSandboxes(t *testing.T) {
	const code = `import ctypes, gc, mmap, os
# Whatever mapping is left is overwritten: the record of this very call and no more.
for m in [o for o in gc.get_objects() if isinstance(o, mmap.mmap)]:
    try:
        m[:] = b'\xff' * len(m)
    except ValueError:
        pass
import sys
board = sys._getframe(2).f_globals['BOARD']
board[:] = b'\xff' * len(board)
os._exit(7)`
	everyTier(t, func(t *testing.T, e *Executor) {
		got := run(t, e, code)
		require.Equal(t, sandbox.StatusRuntime, got.Status, "%+v", got)
		require.Equal(t, 7, got.ExitCode)
		require.Equal(t, sandbox.Result{Status: sandbox.StatusOK, Value: "2"}, strip(run(t, e, "1 + 1")))
	})
}

func strip(r sandbox.Result) sandbox.Result {
	r.Timing = sandbox.Timing{}
	return r
}

func TestStatsCount(t *testing.T) {
	e := open(t, Options{Workers: 2})
	before := e.Stats()
	require.Equal(t, 2, before.Workers)
	runAll(t, e, make16("1")...)
	require.Equal(t, int64(16), e.Stats().Forks-before.Forks)
}

// A child also has the right thread id in the C library's own record: abort sends its signal to that id. (The weaker
// tiers refuse signals.)
func TestAChildKnowsItsThread(t *testing.T) {
	got := run(t, strongest(t), "import ctypes\nctypes.CDLL(None).abort()")
	require.Equal(t, sandbox.StatusKilled, got.Status)
	require.Equal(t, "SIGABRT", got.Signal)
}
