package programs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

var limits = sandbox.Limits{CPU: time.Second, Wall: 20 * time.Second, MemoryBytes: 128 << 20, OutputBytes: 16 << 10}

// double has a helper in its prompt, which its tests use.
var double = env.Tests{Prompt: "from typing import List\n\ndef half(x: int):\n    return x // 2\n\n\n" +
	"def double(x: int):\n    \"\"\" Doubles x. \"\"\"\n", Entry: "double",
	Test: "def check(candidate):\n    for x in range(5):\n        assert half(candidate(x)) == x\n"}

func pair(t *testing.T, program string) symbolic.Pair {
	t.Helper()
	gold, err := double.Gold()
	require.NoError(t, err)
	return symbolic.Pair{Answer: program, Gold: gold}
}

func TestVerdicts(t *testing.T) {
	zygotetest.Need(t)
	e, err := zygote.Open(zygote.Options{Workers: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	const right = "def double(x):\n    return 2 * x"
	cases := []struct{ program, verdict, grader string }{
		{right, "equal", "tests"},
		{"    return 2 * x", "equal", "tests"}, // HumanEval's own form: the body
		{"import math\n" + right + "\nprint('noise')", "equal", "tests"},
		{"def double(x):\n    return x", "different", "tests"},
		{"def double(x): return", "different", "tests"},
		{"def other(x): return 2 * x", "different", "tests"}, // the prompt's own function returns nothing
		{"double = 3", "different", "tests"},
		{"del double", "different", "tests"},
		{"def double(x:", "different", "tests"},
		{"raise ValueError", "different", "tests"},
		{"import sys\nsys.exit(0)", "different", "tests"},
		{"import os\nos._exit(0)", "different", "tests"},
		{"import os\nos.kill(os.getpid(), 9)", "different", "tests"},
		{"def half(x): return 0\ndef double(x): return 0", "different", "tests"}, // the tests keep their own half
		{"class Any:\n    def __floordiv__(self, n): return self\n    def __eq__(self, o): return True\n" +
			"def double(x): return Any()", "different", "tests"},
		{"class Int(int):\n    def __floordiv__(self, n): return 0\n    def __eq__(self, o): return True\n" +
			"def double(x): return Int()", "different", "tests"},
		{"import sys\nsys.stdout.close()\n" + right, "equal", "tests"},
		{"while True: pass", "unreadable", "limit timeout_cpu"},
		{"x = bytearray(1 << 30)", "unreadable", "limit out_of_memory"},
		{"while True: print('x' * 1000)", "unreadable", "limit output_limit"},
	}
	pairs := make([]symbolic.Pair, len(cases))
	for i, c := range cases {
		pairs[i] = pair(t, c.program)
	}
	graded, err := Run(t.Context(), e, pairs, limits)
	require.NoError(t, err)
	for i, c := range cases {
		require.NoError(t, graded[i].Broken, c.program)
		require.Equal(t, symbolic.Grade{Verdict: symbolic.Verdict(c.verdict), Grader: c.grader}, graded[i].Grade,
			c.program)
	}
}

// Tests without check are run as they are, and a prompt may be a text.
func TestTestsWithoutCheck(t *testing.T) {
	zygotetest.Need(t)
	e, err := zygote.Open(zygote.Options{Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	gold, err := env.Tests{Prompt: "Write a function that adds.", Entry: "add", Test: "assert add(1, 2) == 3"}.Gold()
	require.NoError(t, err)
	graded, err := Run(t.Context(), e, []symbolic.Pair{{Answer: "def add(a, b): return a + b", Gold: gold},
		{Answer: "def add(a, b): return a", Gold: gold}}, limits)
	require.NoError(t, err)
	require.Equal(t, []symbolic.Verdict{symbolic.Equal, symbolic.Different}, []symbolic.Verdict{graded[0].Verdict,
		graded[1].Verdict})
}

// A signal that ends the program ends the call, so that Run can tell it from a program that fails.
func TestASignalOfTheProgramIsTheCalls(t *testing.T) {
	zygotetest.Need(t)
	e, err := zygote.Open(zygote.Options{Workers: 1, Tier: sandbox.TierFull}) // elsewhere calls cannot send signals
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	for number, name := range map[int]string{9: "SIGKILL", 15: "SIGTERM", 13: "SIGPIPE"} {
		program := fmt.Sprintf("import os, signal\nsignal.signal(13, 0)\nos.kill(os.getpid(), %d)", number)
		call, err := callOf(pair(t, program), limits)
		require.NoError(t, err)
		got, err := e.Run(t.Context(), []sandbox.Call{call})
		require.NoError(t, err)
		require.Equal(t, sandbox.StatusKilled, got[0].Status, got[0].Stderr)
		require.Equal(t, name, got[0].Signal)
	}
}

// scripted answers each call with the next of its outcomes.
type scripted struct {
	outcomes []sandbox.Outcome
	calls    int
}

func (s *scripted) Run(_ context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	results, broken := make([]sandbox.Result, len(calls)), make(sandbox.CallErrors, len(calls))
	for i := range calls {
		o := s.outcomes[min(s.calls, len(s.outcomes)-1)]
		s.calls++
		results[i], broken[i] = o.Result, o.Broken
	}
	for _, err := range broken {
		if err != nil {
			return results, broken
		}
	}
	return results, nil
}

func (*scripted) Close() error { return nil }

func status(s sandbox.Status) sandbox.Outcome {
	return sandbox.Outcome{Result: sandbox.Result{Status: s}}
}

// What the sandbox breaks is no verdict, and what the wall clock ended is tried again.
func TestBreakageIsNoVerdict(t *testing.T) {
	pairs := []symbolic.Pair{pair(t, "a"), pair(t, "b")}
	passed := status(sandbox.StatusOK)
	passed.Stdout = "\n" + token(pairs[0]) + "\n"
	s := &scripted{outcomes: []sandbox.Outcome{status(sandbox.StatusTimeoutWall), status(sandbox.StatusKilled),
		passed}}
	graded, err := Run(t.Context(), s, pairs, limits)
	require.NoError(t, err)
	require.Equal(t, symbolic.Equal, graded[0].Verdict)
	require.Equal(t, symbolic.Different, graded[1].Verdict)

	s = &scripted{outcomes: []sandbox.Outcome{status(sandbox.StatusKilled), passed}}
	graded, err = Run(t.Context(), s, pairs[:1], limits)
	require.NoError(t, err)
	require.Equal(t, symbolic.Equal, graded[0].Verdict, "a signal may have come from outside")

	lost := sandbox.Outcome{Broken: errors.New("lost")}
	s = &scripted{outcomes: []sandbox.Outcome{lost, status(sandbox.StatusRuntime), lost, status(sandbox.StatusOK)}}
	graded, err = Run(t.Context(), s, pairs, limits)
	require.NoError(t, err)
	require.EqualError(t, graded[0].Broken, "lost")
	require.Empty(t, graded[0].Verdict)

	s = &scripted{outcomes: []sandbox.Outcome{status("a new status")}}
	_, err = Run(t.Context(), s, pairs, limits)
	require.ErrorContains(t, err, "test 2 programs: none got a verdict: the call that tests a program gave no verdict")

	s = &scripted{outcomes: []sandbox.Outcome{lost}}
	_, err = Run(t.Context(), s, pairs, limits)
	require.ErrorContains(t, err, "test programs: none of 2 calls got a verdict: lost")

	_, err = Run(t.Context(), s, []symbolic.Pair{{Answer: "a", Gold: "{}"}}, limits)
	require.ErrorContains(t, err, "read the tests of a program: entry_point or test is missing")
}
