package zygote

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

func TestShowsNothing(t *testing.T) {
	for _, code := range []string{
		"print(1)", "x = 1\nprint(x)\n\n", "for x in y:\n    print(x)",
		"import numpy as np; print(int(np.arange(10).sum()))", `print("a;b)", 'c"d')`, "print((1))",
		"x = 1", "x += f(2)", "x=[1,\n2]\ny = x[0]", "a = b = '=='", "f(1); x //= 2", "if y:\n    x = 1",
		"x = (1 == 2)",
	} {
		require.True(t, showsNothing(code), code)
	}
	for _, code := range []string{
		"", "1", "x", "print(1) or (2)", "print(1), (2)", "print(1) + f(2)", "print", "print = len\nprint('abc')",
		"def print(x): return 7\nprint(1)", "def  print(x): return 7\nprint(1)",
		"5 or \\\nprint(1)", "print(1); 2", "print(')') or (2)", `print("""a""")`, `print("\"") or (")")`,
		"print(f'{x}')", "print(1) # or 2", "globals()['print'] = len\nprint('a')",
		"from x import y as print\nprint(1)", "class A:\n    print: int\nprint(1)", "'''\nprint(1)", "f(1)",
		"pprint.pprint(1)\n[\nprint(1)", "reprint\nprint(1)", "print(1)\\",
		"x == 1", "x <= 1", "x != 1", "f(1,\nx=1)", "f(1,\nx=(1))", "x.y == 2", "1\\\nx = 1",
		"[y for y in x\nif y == 1]", "x, y = 1, 2", "x.y = 1", "x: int = 1", "x = {1}",
	} {
		// If an open bracket or string ends at such a line, the whole is not a valid program.
		if code == "'''\nprint(1)" || code == "pprint.pprint(1)\n[\nprint(1)" {
			continue
		}
		require.False(t, showsNothing(code), code)
	}
}

// If showsNothing returns true for a program, then parsing the program also finds no value to show.
func FuzzShowsNothing(f *testing.F) {
	for _, code := range []string{"print(1)", "x = 1\nprint(x)", "(\nprint(1))", "1 or \\\nprint(2)", "print(1) or (5)",
		"[\nprint(1),\nprint(2)]", "if 1: print(1)", "lambda: 1; print(1)", "print((5))", "x = 1", "dict(a=2,\nx = 1)",
		"x = 1; x == 1", "[\nx = 1\n]"} {
		f.Add(code)
	}
	e, err := Open(Options{Workers: 1})
	if err != nil {
		f.Skipf("sandbox cannot be opened: %v", err)
	}
	f.Cleanup(func() { e.Close() })
	f.Fuzz(func(t *testing.T, code string) {
		call := sandbox.Call{Code: code, Limits: quick}
		if !showsNothing(code) || call.Validate() != nil {
			return
		}
		whole := call
		whole.Code += "\n" // and a comment, on which showsNothing gives up, so the program is parsed
		whole.Code += "#"
		require.False(t, showsNothing(whole.Code))
		got, err := e.Run(t.Context(), []sandbox.Call{call, whole})
		require.NoError(t, err)
		require.Equal(t, got[1].Value, got[0].Value)
		require.Equal(t, got[1].Status, got[0].Status)
		require.Equal(t, got[1].Stdout, got[0].Stdout)
	})
}
