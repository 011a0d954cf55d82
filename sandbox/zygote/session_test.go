package zygote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
)

// openSessions opens sessions for a test. It skips the test if there is no Python or the tier does not work;
// ROPEWALK_REQUIRE_TIER turns the latter into a failure.
func openSessions(t testing.TB, o Options) *Sessions {
	t.Helper()
	o.Python = os.Getenv("ROPEWALK_TEST_PYTHON")
	s, err := OpenSessions(o)
	if errors.Is(err, sandbox.ErrNoPython) || o.Tier != "" && err != nil && os.Getenv("ROPEWALK_REQUIRE_TIER") == "" {
		t.Skipf("sessions cannot be opened: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// everySession runs a test with sessions of each tier that the machine allows.
func everySession(t *testing.T, test func(*testing.T, *Sessions)) {
	for _, tier := range sandbox.Tiers() {
		t.Run(string(tier), func(t *testing.T) {
			s := openSessions(t, Options{Tier: tier})
			require.Equal(t, string(tier), s.Isolation())
			test(t, s)
		})
	}
}

// newSessionOf opens a session that is closed when the test ends.
func newSessionOf(t testing.TB, s *Sessions, limits sandbox.Limits) *session {
	t.Helper()
	one, err := s.OpenSession(context.Background(), "", limits)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, one.Close()) })
	return one.(*session)
}

// cell runs one and returns its verdict without Timing.
func cell(t testing.TB, s sandbox.Session, code string) sandbox.Result {
	t.Helper()
	result, err := s.Run(context.Background(), sandbox.Call{Code: code})
	require.NoError(t, err)
	require.Positive(t, result.Timing.Wall)
	result.Timing = sandbox.Timing{}
	return result
}

func fine(stdout, value string) sandbox.Result {
	return sandbox.Result{Status: sandbox.StatusOK, Stdout: stdout, Value: value}
}

// raised returns the verdict on a cell that ended with an exception.
func raised(status sandbox.Status, traceback string) sandbox.Result {
	return sandbox.Result{Status: status, ExitCode: 1, Stderr: traceback, Traceback: traceback}
}

func TestCells(t *testing.T) {
	const from = "Traceback (most recent call last):\n"
	notebook := []struct {
		name, code string
		want       sandbox.Result
	}{
		{"statement", "x = 20", fine("", "")},
		{"value", "x += 1\nx", fine("", "21")},
		{"function", "def f(n):\n    return 1 // n", fine("", "")},
		{"exception with the source of an earlier cell", "f(0)", raised("runtime_error",
			from+"  File \"<cell 4>\", line 1, in <module>\n    f(0)\n  File \"<cell 3>\", line 2, in f\n"+
				"    return 1 // n\nZeroDivisionError: integer division or modulo by zero\n")},
		{"state after an exception", "print(x)", fine("21\n", "")},
		{"syntax error", "x = = 1", raised("syntax_error",
			"  File \"<cell 6>\", line 1\n    x = = 1\nSyntaxError: invalid syntax\n")},
		{"late syntax error", "return 1",
			raised("syntax_error",
				"  File \"<cell 7>\", line 1\n    return 1\nSyntaxError: 'return' outside function\n")},
		{"null byte", "x = '\x00'", raised("syntax_error", "")},
		{"value hidden by semicolon", "x;", fine("", "")},
		{"empty", "", fine("", "")},
		{"both streams", "import sys\nprint('e', file=sys.stderr)\nprint('o')\nx",
			sandbox.Result{Status: "ok", Stdout: "o\n", Stderr: "e\n", Value: "21"}},
		{"no stdin", "input()", raised("runtime_error",
			from+"  File \"<cell 12>\", line 1, in <module>\n    input()\nEOFError: EOF when reading a line\n")},
		{"address", "object()", fine("", "<object object at 0x000000000000>")},
		{"interrupt", "raise KeyboardInterrupt",
			raised("runtime_error",
				from+"  File \"<cell 14>\", line 1, in <module>\n    raise KeyboardInterrupt\nKeyboardInterrupt\n")},
		{"file too large", "open('big', 'wb').write(bytes(20 << 20))", raised("file_limit", "")},
		{"file in the folder", "import os\nopen('kept', 'w').write('k')\nsorted(os.listdir())",
			fine("", "['big', 'kept']")},
		{"streams that the code replaced", "import io\nsys.stdout = io.StringIO()\nprint('hidden')", fine("", "")},
		{"streams that it puts back", "sys.stdout = sys.__stdout__\nprint('shown')", fine("shown\n", "")},
		{"the main module", "__name__, globals() is sys.modules['__main__'].__dict__", fine("", "('__main__', True)")},
		{"source is kept", "import inspect\ninspect.getsource(f)", fine("", `'def f(n):\n    return 1 // n'`)},
		{"long code", strings.Repeat("x += 1\n", 30000) + "x", fine("", "30021")},
		{"long value", "'a' * 60000 + 'b'", fine("", "'"+strings.Repeat("a", 60000)+"b'")},
		{"binary output", "n = sys.stdout.buffer.write(b'a\\xff\\x00b')", fine("a\uFFFD\x00b", "")},
		{"output below the interpreter", "n = os.write(1, b'below\\n')", fine("below\n", "")},
		{"letters are not verdicts", "print('.ov', 'Traceback: MemoryError')",
			fine(".ov Traceback: MemoryError\n", "")},
	}
	everySession(t, func(t *testing.T, s *Sessions) {
		one := newSessionOf(t, s, sandbox.Limits{CPU: time.Second})
		for _, c := range notebook {
			got := cell(t, one, c.code)
			got.Stderr, got.Traceback = withoutCarets(got.Stderr), withoutCarets(got.Traceback)
			if c.want.Status.Failed() && c.want.Stderr == "" {
				require.NotEmpty(t, got.Stderr, c.name)
				require.Equal(t, got.Stderr, got.Traceback, c.name)
				got.Stderr, got.Traceback = "", "" // its words differ between versions of Python
			}
			require.Equal(t, c.want, got, c.name)
		}
	})
}

func TestCellsTakeInputAndFiles(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		one := newSessionOf(t, s, quick)
		run := func(c sandbox.Call) sandbox.Result {
			got, err := one.Run(t.Context(), c)
			require.NoError(t, err)
			got.Timing = sandbox.Timing{}
			return got
		}
		require.Equal(t, fine("21 rest\n", ""),
			run(sandbox.Call{Code: "import sys\nprint(input(), sys.stdin.read())", Stdin: "21\nrest"}))
		require.Equal(t, fine("", "''"), run(sandbox.Call{Code: "sys.stdin.read()"}), "an input belongs to one cell")
		files := []sandbox.File{{Name: "a/b.txt", Content: []byte("deep")}, {Name: "c", Content: []byte{0, 255}},
			{Name: "empty", Content: nil}}
		got := run(sandbox.Call{Code: "import os\nos.mkdir('d')\nos.chdir('d')\n" +
			"open('../new', 'w').write('n' * 100000)\nopen('../a/b.txt').read()", Files: files,
			Collect: []string{"new", "missing", "a", "c", "empty"}})
		require.Equal(t, []sandbox.File{{Name: "new", Content: []byte(strings.Repeat("n", 100000))}, files[1],
			{Name: "empty"}}, got.Files)
		require.Equal(t, "'deep'", got.Value)
		require.Equal(t, fine("", "'deep'"), run(sandbox.Call{Code: "open('../a/b.txt').read()"}), "files stay")
		got = run(sandbox.Call{Code: "1", Files: []sandbox.File{{Name: "a", Content: []byte("in the way")}}})
		require.Equal(t, sandbox.StatusRuntime, got.Status, "a folder has that name")
		require.Equal(t, fine("", "2"), run(sandbox.Call{Code: "2"}))
	})
}

// endings are cells that end their session.
var endings = []struct {
	name, code string
	want       sandbox.Result
}{
	{"exit", "print('bye')\nraise SystemExit", sandbox.Result{Status: "ok", Stdout: "bye\n"}},
	{"exit with a code", "import sys\nsys.exit(7)", sandbox.Result{Status: "runtime_error", ExitCode: 7}},
	{"exit with words", "raise SystemExit('no')", sandbox.Result{Status: "runtime_error", ExitCode: 1, Stderr: "no\n"}},
	{"hard exit", "import os\nos._exit(3)", sandbox.Result{Status: "runtime_error", ExitCode: 3}},
	{"exit runs what was put off", "import atexit\natexit.register(print, 'last')\nexit = SystemExit()\nraise exit",
		sandbox.Result{Status: "ok", Stdout: "last\n"}},
	{"crash", "import ctypes\nctypes.string_at(0)", sandbox.Result{Status: "killed", ExitCode: -1, Signal: "SIGSEGV"}},
	{"endless loop", "while True: pass", sandbox.Result{Status: "timeout_cpu", ExitCode: -1, Signal: "SIGKILL"}},
	{"endless loop of threads",
		"import threading\nfor _ in range(3): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()\n" +
			"while True: pass", sandbox.Result{Status: "timeout_cpu", ExitCode: -1, Signal: "SIGKILL"}},
	{"sleep", "print('a', flush=True)\nimport time\ntime.sleep(60)",
		sandbox.Result{Status: "timeout_wall", ExitCode: -1, Signal: "SIGKILL"}},
	{"sleep that ignores signals",
		"import signal, time\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n" +
			"    except OSError: pass\ntime.sleep(60)",
		sandbox.Result{Status: "timeout_wall", ExitCode: -1, Signal: "SIGKILL"}},
	{"memory bomb", "a = []\nwhile True: a.append('x' * 100000)", sandbox.Result{Status: "out_of_memory", ExitCode: 1}},
	{"one huge object", "x = bytearray(10**10)", sandbox.Result{Status: "out_of_memory", ExitCode: 1}},
	{"endless output", "while True: print('abcdefg')",
		sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL",
			Stdout: strings.Repeat("abcdefg\n", 1<<10)}},
	{"a little too much output", "print('x' * 8192)",
		sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL", Stdout: strings.Repeat("x", 8<<10)}},
	{"too much on stderr", "import sys\nsys.stderr.write('x' * 100000)",
		sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL", Stderr: strings.Repeat("x", 8<<10)}},
	{"value too long", "'x' * 100000", sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL"}},
	{"socket closed", "import os, time\nos.close(3)", sandbox.Result{Status: "runtime_error", ExitCode: 1}},
	{"socket shut, then sleep", "import socket, time\nsocket.socket(fileno=3).shutdown(2)\ntime.sleep(60)",
		sandbox.Result{Status: "killed", ExitCode: -1, Signal: "SIGKILL"}},
}

func TestCellsThatEndTheirSession(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_SANDBOX", "test-sandbox")
	everySession(t, func(t *testing.T, s *Sessions) {
		if s.Isolation() == string(sandbox.TierRlimits) {
			return // takes the same ways as landlock
		}
		for _, c := range endings {
			t.Run(c.name, func(t *testing.T) {
				one := newSessionOf(t, s, quick)
				require.Equal(t, "1", cell(t, one, "1").Value)
				limits := sandbox.Limits{}
				if c.want.Status == sandbox.StatusTimeoutWall {
					limits.Wall = 300 * time.Millisecond
				}
				got, err := one.Run(t.Context(), sandbox.Call{Code: c.code, Limits: limits})
				require.NoError(t, err)
				got.Timing = sandbox.Timing{}
				if c.want.Status == sandbox.StatusOutOfMemory {
					require.Contains(t, got.Traceback, "MemoryError")
					got.Stderr, got.Traceback = "", ""
				}
				require.Equal(t, c.want, got)
				_, err = one.Run(t.Context(), sandbox.Call{Code: "1"})
				require.ErrorIs(t, err, sandbox.ErrSessionEnded)
				require.ErrorIs(t, err, sandbox.ErrSessionLost)
				require.ErrorContains(t, err, string(c.want.Status))
			})
		}
	})
}

func TestSessionLimitsHoldForEachCell(t *testing.T) {
	one := newSessionOf(t, openSessions(t, Options{}),
		sandbox.Limits{CPU: time.Second, Wall: hangs, OutputBytes: 1000})
	for range 3 { // together more CPU time and more output than one cell may have
		got := cell(t, one,
			"import time\nend = time.process_time() + .4\nwhile time.process_time() < end: pass\nprint('x' * 900)")
		require.Equal(t, sandbox.StatusOK, got.Status)
	}
	got, err := one.Run(t.Context(), sandbox.Call{Code: "print('x' * 900)", Limits: sandbox.Limits{OutputBytes: 10}})
	require.NoError(t, err)
	require.Equal(t, sandbox.StatusOutputLimit, got.Status)
	require.Equal(t, strings.Repeat("x", 10), got.Stdout)
}

func TestBadCellsLeaveTheSession(t *testing.T) {
	s := openSessions(t, Options{})
	_, err := s.OpenSession(t.Context(), "numpy+everything", sandbox.Limits{})
	require.ErrorIs(t, err, sandbox.ErrBadCall)
	_, err = s.OpenSession(t.Context(), "", sandbox.Limits{CPU: -1})
	require.ErrorContains(t, err, "limits.cpu")
	one := newSessionOf(t, s, quick)
	for _, c := range []struct {
		cell sandbox.Call
		want string
	}{
		{sandbox.Call{Code: "\xff"}, "UTF-8"},
		{sandbox.Call{Language: sandbox.Bash}, "language of the cell is bash"},
		{sandbox.Call{Packages: sandbox.PackagesSympy}, "packages of the cell is sympy"},
		{sandbox.Call{Limits: sandbox.Limits{MemoryBytes: 1}}, "limits.memory of the cell is 1"},
		{sandbox.Call{Limits: sandbox.Limits{FileBytes: 1}}, "limits.file of the cell is 1"},
		{sandbox.Call{Limits: sandbox.Limits{Processes: 1}}, "limits.processes of the cell is 1"},
		{sandbox.Call{Files: []sandbox.File{{Name: "../up"}}}, "files[0]"},
	} {
		_, err := one.Run(t.Context(), c.cell)
		require.ErrorIs(t, err, sandbox.ErrBadCall)
		require.ErrorContains(t, err, c.want)
	}
	require.Equal(t, fine("", "1"), cell(t, one, "1"))
}

func TestSessionsOfPackageSets(t *testing.T) {
	sets := []PackageSet{{Name: "plain"}, {Name: "colours", Modules: []string{"colorsys"}, Warm: "import colorsys"},
		{Name: "gone", Modules: []string{"no_such_module"}}}
	s := openSessions(t, Options{Sets: sets, Preload: []string{"colours"}})
	for packages, want := range map[string]string{"": "False", "plain": "False", "colours": "True"} {
		one, err := s.OpenSession(t.Context(), packages, quick)
		require.NoError(t, err)
		require.Equal(t, fine("", want), cell(t, one, "import sys\n'colorsys' in sys.modules"))
		_, err = one.Run(t.Context(), sandbox.Call{Packages: "other"})
		require.ErrorIs(t, err, sandbox.ErrBadCall)
		require.NoError(t, one.Close())
	}
	_, err := s.OpenSession(t.Context(), "gone", quick)
	require.ErrorContains(t, err, "no_such_module")
	_, err = OpenSessions(Options{Sets: sets, Preload: []string{"nowhere"}})
	require.ErrorContains(t, err, "preload")
}

func TestSecondCellWaits(t *testing.T) {
	one := newSessionOf(t, openSessions(t, Options{}), quick)
	require.Equal(t, sandbox.StatusOK, cell(t, one, "import time\nseen = []").Status)
	ends := make(chan error, 8)
	for i := range cap(ends) {
		go func() {
			_, err := one.Run(context.Background(),
				sandbox.Call{Code: fmt.Sprintf("seen.append(%d)\nn = len(seen)\ntime.sleep(.02)\nassert n == len(seen)",
					i)})
			ends <- err
		}()
	}
	for range cap(ends) {
		require.NoError(t, <-ends)
	}
	require.Equal(t, fine("", "8"), cell(t, one, "len(seen)"))
	short, cancel := context.WithCancel(t.Context())
	one.turn <- struct{}{} // as a cell that runs
	cancel()
	_, err := one.Run(short, sandbox.Call{Code: "seen.append(9)"})
	require.ErrorIs(t, err, context.Canceled)
	<-one.turn
	require.Equal(t, fine("", "8"), cell(t, one, "len(seen)"), "a cell that never began has no effect")
}

func TestCancelledCellLosesItsSession(t *testing.T) {
	one := newSessionOf(t, openSessions(t, Options{}), quick)
	ctx, cancel := context.WithCancel(t.Context())
	onCell(t, one, cancel)
	_, err := one.Run(ctx, sandbox.Call{Code: held})
	require.ErrorIs(t, err, context.Canceled)
	_, err = one.Run(t.Context(), sandbox.Call{Code: "1"})
	require.ErrorIs(t, err, sandbox.ErrSessionLost)
	require.NotErrorIs(t, err, sandbox.ErrSessionEnded)
}
