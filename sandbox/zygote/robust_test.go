package zygote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestManyBatchesAreNotMixedUp(t *testing.T) {
	e := open(t, Options{})
	const batches, each = 16, 16
	var all sync.WaitGroup
	for b := range batches {
		all.Go(func() {
			calls := make([]sandbox.Call, each)
			for i := range calls {
				calls[i] = sandbox.Call{Code: fmt.Sprintf("print(input())\n%d", b*each+i),
					Stdin: fmt.Sprint("in ", b*each+i)}
			}
			results, err := e.Run(context.Background(), calls)
			if err != nil || len(results) != each {
				t.Errorf("batch %d: %d results, %v", b, len(results), err)
				return
			}
			for i, r := range results {
				n := b*each + i
				if r.Value != fmt.Sprint(n) || r.Stdout != fmt.Sprintf("in %d\n", n) {
					t.Errorf("call %d got %+v", n, r)
				}
			}
		})
	}
	all.Wait()
}

func TestKilledZygoteIsReplacedAndItsCallRunAgain(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		victim := e.peek().bare()
		onCall(t, func(zygote, call int) {
			if zygote == victim.command.Process.Pid {
				victim.kill()
			} else {
				release(call)
			}
		})
		results := runAll(t, e, sandbox.Call{Code: held + "1"}, sandbox.Call{Code: "2"}, sandbox.Call{Code: "3"})
		require.Equal(t, []string{"1", "2", "3"}, []string{results[0].Value, results[1].Value, results[2].Value})
		require.NotSame(t, victim, e.peek().bare())
	})
}

func TestZygoteThatCannotBeReplacedIsBreakage(t *testing.T) {
	e := open(t, Options{Workers: 1})
	// The zygote starts the call only when this test says so, so that the test can kill each zygote.
	s := e.peek()
	s.drop(s.bare())
	set := e.plan.sets.available[0]
	ctx := context.Background()
	onCall(t, func(zygote, _ int) { _ = unix.Kill(zygote, unix.SIGKILL) })
	var faults []error
	for range 2 {
		_, err := e.zygote(s, set)
		require.NoError(t, err)
		_, err = e.attempt(ctx, &task{scheduler: e.scheduler}, set, sandbox.Call{Code: held})
		faults = append(faults, err)
		require.Empty(t, s.zygotes)
	}
	require.ErrorContains(t, errors.Join(faults...), "await zygote's reply")
	e.plan.python.Executable = "/nowhere/python3" // now no zygote can be started at all
	_, err := e.Run(ctx, []sandbox.Call{{Code: "1"}})
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	require.ErrorContains(t, err, "twice")
}

// alike are programs whose results must not depend on when and where on a machine they run. Several print what usually
// differs.
var alike = []string{
	"1/0",
	"def f(n):\n    return f(n + 1)\nf(0)",
	"class A: pass\nprint(A())\nA().x",
	"print(object(), [object() for _ in range(3)])",
	"import random\nrandom.random()",
	"print({str(i) for i in range(20)}, hash('a'))",
	"import os\nprint(os.getpid(), os.getppid(), os.getcwd(), os.getuid())",
	"import threading\ndef g(): 1/0\nt = threading.Thread(target=g)\nt.start()\nt.join()",
	"import sys\nsys.path, sys.argv, __file__, __name__",
	"while True: print('y')",
	"a = []\nwhile True: a.append(bytes(100000))",
	"import json\njson.loads('{')",
	"print('abc'\n",
	"import warnings\nwarnings.warn('w')",
}

func TestResultsDependOnTheCodeAlone(t *testing.T) {
	first, second := strongest(t), strongest(t)
	calls := make([]sandbox.Call, len(alike))
	for i, code := range alike {
		calls[i].Code = code
	}
	want := runAll(t, first, calls...)
	for i, r := range want {
		require.NotEmpty(t, r.Stdout+r.Stderr+r.Value, alike[i])
	}
	for _, e := range []*Executor{first, second, first} {
		run(t, e, "open('left', 'w').write('x' * 1000)\nx = [i for i in range(100000)]")
		got := runAll(t, e, calls...)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(sandbox.Result{}, "Timing")); diff != "" {
			t.Errorf("results differ (-first +later):\n%s", diff)
		}
	}
}
