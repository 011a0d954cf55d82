package zygote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
)

// quick has low limits, so that the tests of limits are short.
var quick = sandbox.Limits{CPU: time.Second, Wall: hangs, MemoryBytes: 128 << 20, OutputBytes: 8 << 10}

// open returns an executor that the test closes, or skips where there is no Python or tier.
// ROPEWALK_TEST_PYTHON names an interpreter other than the one that Open would find.
func open(t *testing.T, o Options) *Executor {
	t.Helper()
	o.Python = os.Getenv("ROPEWALK_TEST_PYTHON")
	e, err := Open(o)
	if errors.Is(err, sandbox.ErrNoPython) || o.Tier != "" && err != nil {
		t.Skipf("sandbox cannot be opened: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// strongest opens an executor in the tier "full", or skips the test.
func strongest(t *testing.T) *Executor { return open(t, Options{Tier: sandbox.TierFull, Workers: 2}) }

func runAll(t *testing.T, e *Executor, calls ...sandbox.Call) []sandbox.Result {
	t.Helper()
	for i := range calls {
		if calls[i].Limits == (sandbox.Limits{}) {
			calls[i].Limits = quick
		}
	}
	results, err := e.Run(context.Background(), calls)
	require.NoError(t, err)
	require.Len(t, results, len(calls))
	return results
}

func run(t *testing.T, e *Executor, code string) sandbox.Result {
	t.Helper()
	return runAll(t, e, sandbox.Call{Code: code})[0]
}

// verdicts hold in every tier. Whole results are compared, except for Timing.
var verdicts = []struct {
	name, code, stdin string
	want              sandbox.Result
}{
	{"print", "print(1+2)", "", sandbox.Result{Status: "ok", Stdout: "3\n"}},
	{"empty", "", "", sandbox.Result{Status: "ok"}},
	{"value", "x = 20\nx + 1", "", sandbox.Result{Status: "ok", Value: "21"}},
	{"value of text", "'a' + 'b'", "", sandbox.Result{Status: "ok", Value: "'ab'"}},
	{"value hidden by semicolon", "1 + 1;", "", sandbox.Result{Status: "ok"}},
	{"no value of a statement", "x = 1", "", sandbox.Result{Status: "ok"}},
	{"value and output", "print('a')\n7", "", sandbox.Result{Status: "ok", Stdout: "a\n", Value: "7"}},
	{"stdin", "a = input()\nimport sys\nprint(int(a) * 2, sys.stdin.read())", "21\nrest",
		sandbox.Result{Status: "ok", Stdout: "42 rest\n"}},
	{"no stdin", "input()", "", sandbox.Result{Status: "runtime_error", ExitCode: 1,
		Stderr: "Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    input()\n" +
			"EOFError: EOF when reading a line\n"}},
	{"stderr", "import sys\nprint('e', file=sys.stderr)", "", sandbox.Result{Status: "ok", Stderr: "e\n"}},
	{"exception", "def f():\n    raise ValueError('no')\nf()", "",
		sandbox.Result{Status: "runtime_error", ExitCode: 1,
			Stderr: "Traceback (most recent call last):\n  File \"main.py\", line 3, in <module>\n    f()\n" +
				"  File \"main.py\", line 2, in f\n    raise ValueError('no')\nValueError: no\n"}},
	{"exception in the standard library", "import json\njson.loads('')", "",
		sandbox.Result{Status: "runtime_error", ExitCode: 1,
			Stderr: "Traceback (most recent call last):\n  File \"main.py\", line 2, in <module>\n" +
				"    json.loads('')\njson.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"}},
	{"words are not verdicts", "print('Traceback: MemoryError SyntaxError timeout')", "",
		sandbox.Result{Status: "ok", Stdout: "Traceback: MemoryError SyntaxError timeout\n"}},
	{"null byte", "x = '\x00'", "", sandbox.Result{Status: "syntax_error", ExitCode: 1}},
	{"late syntax error", "return 1", "",
		sandbox.Result{Status: "syntax_error", ExitCode: 1,
			Stderr: "  File \"main.py\", line 1\n    return 1\n    ^^^^^^^^\n" +
				"SyntaxError: 'return' outside function\n"}},
	{"syntax error of code in code", "eval('1+')", "", sandbox.Result{Status: "runtime_error", ExitCode: 1}},
	{"exit code", "import sys\nsys.exit(7)", "", sandbox.Result{Status: "runtime_error", ExitCode: 7}},
	{"exit 0", "print('a')\nraise SystemExit", "", sandbox.Result{Status: "ok", Stdout: "a\n"}},
	{"exit with message", "exit = SystemExit('bye')\nraise exit", "",
		sandbox.Result{Status: "runtime_error", ExitCode: 1, Stderr: "bye\n"}},
	{"hard exit", "import os\nos._exit(3)", "", sandbox.Result{Status: "runtime_error", ExitCode: 3}},
	{"atexit and threads",
		"import atexit, threading, time\natexit.register(print, 'last')\n" +
			"threading.Thread(target=lambda: (time.sleep(.05), print('thread'))).start()", "",
		sandbox.Result{Status: "ok", Stdout: "thread\nlast\n"}},
	{"crash", "import ctypes\nctypes.string_at(0)", "",
		sandbox.Result{Status: "killed", ExitCode: -1, Signal: "SIGSEGV"}},
	{"binary output", "import sys\nn = sys.stdout.buffer.write(b'a\\xff\\x00b')", "",
		sandbox.Result{Status: "ok", Stdout: "a\uFFFD\x00b"}},
	{"memory bomb", "a = []\nwhile True: a.append('x' * 100000)", "",
		sandbox.Result{Status: "out_of_memory", ExitCode: 1}},
	{"one huge object", "x = bytearray(10**10)", "", sandbox.Result{Status: "out_of_memory", ExitCode: 1}},
	{"endless loop", "while True: pass", "", sandbox.Result{Status: "timeout_cpu", ExitCode: -1, Signal: "SIGXCPU"}},
	{"huge output", "while True: print('abcdefg')", "",
		sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL",
			Stdout: strings.Repeat("abcdefg\n", 1<<10)}},
	{"huge stderr", "import sys\nsys.stderr.write('x' * 100000)", "",
		sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL", Stderr: strings.Repeat("x", 8<<10)}},
	{"huge value", "'x' * 100000", "", sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL"}},
	{"output at the limit", "print('x' * 8191)", "",
		sandbox.Result{Status: "ok", Stdout: strings.Repeat("x", 8191) + "\n"}},
	{"too many threads",
		"import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "",
		sandbox.Result{Status: "process_limit", ExitCode: 1}},
	{"too large a file", "open('a', 'wb').write(b'x' * (17 << 20))", "",
		sandbox.Result{Status: "file_limit", ExitCode: 1}},
	{"long code", "x = 1\n" + strings.Repeat("x += 1\n", 30000) + "x", "",
		sandbox.Result{Status: "ok", Value: "30001"}},
}

func TestVerdicts(t *testing.T) {
	for _, tier := range sandbox.Tiers() {
		t.Run(string(tier), func(t *testing.T) {
			e := open(t, Options{Tier: tier, Workers: 4})
			require.Equal(t, string(tier), e.Isolation())
			calls := make([]sandbox.Call, len(verdicts))
			for i, v := range verdicts {
				calls[i] = sandbox.Call{Code: v.code, Stdin: v.stdin}
			}
			for i, got := range runAll(t, e, calls...) {
				t.Run(verdicts[i].name, func(t *testing.T) { compare(t, verdicts[i].want, got) })
			}
		})
	}
}

// compare ignores what differs between versions of Python: the carets under a line, and the text of errors that a case
// does not state in full.
func compare(t *testing.T, want, got sandbox.Result) {
	t.Helper()
	require.Positive(t, got.Timing.Wall)
	got.Timing = sandbox.Timing{}
	if want.Status == sandbox.StatusRuntime || want.Status == sandbox.StatusSyntax {
		require.Contains(t, got.Stderr, got.Traceback)
	}
	got.Traceback = ""
	got.Stderr = withoutCarets(got.Stderr)
	if want.Stderr == "" && want.Status.Failed() && want.Status != sandbox.StatusOutputLimit {
		got.Stderr = ""
	}
	want.Stderr = withoutCarets(want.Stderr)
	require.Equal(t, want, got)
}

func withoutCarets(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if strings.Trim(line, " ^~\n") != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestTooManyProcessesAreAVerdict(t *testing.T) {
	got := run(t, strongest(t), "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(60)")
	require.Equal(t, sandbox.StatusProcessLimit, got.Status)
	few := quick
	few.Processes = 2
	const code = "import os\nif os.fork() == 0: os._exit(0)\nos.wait()\nif os.fork() == 0:\n    print(os.fork())\n" +
		"os.wait()"
	got = runAll(t, strongest(t), sandbox.Call{Code: code, Limits: few})[0]
	require.Contains(t, got.Stderr, "BlockingIOError")
}

func TestWallLimitEndsSleep(t *testing.T) {
	e := open(t, Options{Workers: 1})
	limits := quick
	limits.Wall = 300 * time.Millisecond
	results := runAll(t, e, sandbox.Call{Code: "import time\nprint('a', flush=True)\ntime.sleep(60)", Limits: limits},
		sandbox.Call{Code: "1"})
	results[0].Timing = sandbox.Timing{}
	require.Equal(t, sandbox.Result{Status: sandbox.StatusTimeoutWall, ExitCode: -1, Signal: "SIGKILL"}, results[0])
	require.Equal(t, "1", results[1].Value)
}

func TestCancelEndsCallsAndLeavesExecutorUsable(t *testing.T) {
	e := open(t, Options{Workers: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running atomic.Int64
	onCall(t, func(int, int) {
		if running.Add(1) == 2 {
			cancel()
		}
	})
	calls := make16(held)
	for i := range calls {
		calls[i].Limits.Wall = hangs
	}
	_, err := e.Run(ctx, calls)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "3\n", run(t, e, "print(3)").Stdout)
}

func make16(code string) []sandbox.Call {
	calls := make([]sandbox.Call, 16)
	for i := range calls {
		calls[i].Code = code
	}
	return calls
}

func TestOpenWithoutPython(t *testing.T) {
	_, err := Open(Options{Python: "/nowhere/python3"})
	require.ErrorIs(t, err, sandbox.ErrNoPython)
	require.ErrorContains(t, err, "/nowhere/python3")
	require.ErrorContains(t, err, "install Python 3.8")
}

func TestRunAfterClose(t *testing.T) {
	e := open(t, Options{Workers: 1})
	require.NoError(t, e.Close())
	_, err := e.Run(context.Background(), make16("1"))
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
}

func TestEmptyBatch(t *testing.T) {
	require.Empty(t, runAll(t, open(t, Options{Workers: 1})))
}

func Example() {
	executor, err := Open(Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer executor.Close()
	results, err := executor.Run(context.Background(), []sandbox.Call{{Code: "print(6 * 7)"}, {Code: "6 / 0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Printf("%s %q\n", r.Status, r.Stdout)
	}
	// Output:
	// ok "42\n"
	// runtime_error ""
}
