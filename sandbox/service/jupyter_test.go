package service

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/sandbox/zygote/zygotetest"
)

// pythonService returns a service with real interpreters, or skips the test.
func pythonService(t *testing.T) (*Service, *zygote.Sessions) {
	t.Helper()
	sessions := zygotetest.Sessions(t)
	return newService(t, Options{Executor: &fake{}, Sessions: sessions}), sessions
}

// Requests from SandboxFusion's own tests and documentation, and the parts of the answers that its clients read.
func TestRunJupyter(t *testing.T) {
	s, _ := pythonService(t)
	run := func(body string) jupyterResponse {
		t.Helper()
		code, text := ask(t, s, "POST", "/run_jupyter", body)
		require.Equal(t, 200, code, text)
		var got jupyterResponse
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		return got
	}
	got := run(`{"cells":["a = 123","a","print(a)","import sys; n = sys.stderr.write(\"stderr message\")",
		"raise RuntimeError(\"error message\")","a + 1"],
		"cell_timeout":0,"total_timeout":45,"kernel":"python3","files":{},"fetch_files":[],"a_field_of_tomorrow":1}`)
	require.Equal(t, "Success", got.Status)
	require.Equal(t, "Finished", got.Driver.Status)
	require.Equal(t, 0, *got.Driver.ReturnCode)
	require.Len(t, got.Cells, 6)
	require.Equal(t, []map[string]string{{"text/plain": "123"}}, got.Cells[1].Display)
	require.Equal(t, "123\n", got.Cells[2].Stdout)
	require.Equal(t, "stderr message", got.Cells[3].Stderr)
	require.Empty(t, got.Cells[4].Stderr)
	require.Equal(t, "RuntimeError", got.Cells[4].Error[0].Name)
	require.Equal(t, "error message", got.Cells[4].Error[0].Value)
	require.Contains(t, got.Cells[4].Error[0].Traceback, "RuntimeError: error message")
	require.Equal(t, "124", got.Cells[5].Display[0]["text/plain"], "the next cell runs after one that raised")
	code, text := ask(t, s, "POST", "/run_jupyter", `{"cells":["1"]}`)
	require.Equal(t, 200, code)
	require.Contains(t, text, `"cells":[{"stdout":"","stderr":"","display":[{"text/plain":"1"}],"error":[]}]`)

	got = run(`{"cells":["open('b.txt', 'w').write(open('a/a.txt').read() * 2)","1"],
		"files":{"a/a.txt":"YQ==","left_out":null},"fetch_files":["b.txt","none"]}`)
	require.Equal(t, map[string]string{"b.txt": "YWE="}, got.Files)
	got = run(`{"cells":[],"files":{"a":"YQ=="},"fetch_files":["a"]}`)
	require.Equal(t, "Success", got.Status)
	require.Empty(t, got.Cells)
	require.Equal(t, map[string]string{"a": "YQ=="}, got.Files)

	for _, tt := range []struct{ name, body, driver, stderr string }{
		{"a cell takes too long", `{"cells":["1","while True: pass"],"cell_timeout":0.5}`, "TimeLimitExceeded",
			"cell 2 took too long"},
		{"all take too long", `{"cells":["import time","time.sleep(1.2)","time.sleep(1.2)"],"total_timeout":2}`,
			"TimeLimitExceeded", "cell 3 took too long"},
		{"an exit in between", `{"cells":["exit = SystemExit()","raise exit","1"]}`, "Finished",
			"a cell before cell 3 ended the kernel"},
		{"no memory", `{"cells":["x = bytearray(10**9)"],"memory_limit_MB":100}`, "Finished",
			"cell 1 ended the kernel: out_of_memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(tt.body)
			require.Equal(t, "Failed", got.Status)
			require.Equal(t, tt.driver, got.Driver.Status)
			require.Equal(t, tt.stderr, *got.Driver.Stderr)
			require.Empty(t, got.Cells)
			require.Equal(t, tt.driver == "TimeLimitExceeded", got.Driver.ReturnCode == nil)
		})
	}
	require.Zero(t, s.sessions.count(), "no kernel is left")
	for body, field := range map[string]string{
		`{}`: "cells", `{"cells":"1"}`: "cells", `{"cells":["1"],"kernel":"bash"}`: "kernel",
		`{"cells":["1"],"total_timeout":0}`: "total_timeout",
		`{"cells":["1"],"cell_timeout":-1}`: "cell_timeout", `{"cells":["1"],"files":{"a":"!"}}`: "files.a",
		`{"cells":["1"],"fetch_files":["../a"]}`: "cells[0].collect[0]",
	} {
		code, text := ask(t, s, "POST", "/run_jupyter", body)
		require.Equal(t, 422, code, text)
		var got validation
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, []string{"body", field}, got.Detail[0].Loc)
	}
	got = jupyterResponse{}
	none := newService(t, Options{Executor: &fake{}, Sessions: nowhere{}})
	code, text = ask(t, none, "POST", "/run_jupyter", `{"cells":["1"]}`)
	require.Equal(t, 200, code)
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, "SandboxError", got.Status)
	require.Contains(t, got.Message, "no interpreter")
}

func TestReadTraceback(t *testing.T) {
	for _, tt := range []struct{ text, name, value string }{
		{"Traceback (most recent call last):\n  File \"<cell 1>\", line 1, in <module>\n    f()\n    ^^^\n" +
			"ZeroDivisionError: division by zero\n", "ZeroDivisionError", "division by zero"},
		{"  File \"<cell 1>\", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n", "SyntaxError",
			"invalid syntax"},
		{"Traceback (most recent call last):\n  File \"<cell 1>\", line 1, in <module>\n    f()\n" +
			"json.decoder.JSONDecodeError: Expecting value: line 1\n", "JSONDecodeError", "Expecting value: line 1"},
		{"Traceback (most recent call last):\n  File \"<cell 1>\", line 1, in <module>\nValueError: a\n  b: c\n",
			"ValueError", "a\n  b: c"},
		{"Traceback (most recent call last):\n  File \"<cell 1>\", line 1, in <module>\nKeyError: 1\n\n" +
			"During handling of the above exception, another exception occurred:\n\n" +
			"Traceback (most recent call last):\n  File \"<cell 1>\", line 3, in <module>\nKeyboardInterrupt\n",
			"KeyboardInterrupt", ""},
		{"ValueError: no frame", "ValueError", "no frame"},
	} {
		got := readTraceback(tt.text)
		require.Equal(t, []string{tt.name, tt.value}, []string{got.Name, got.Value}, tt.text)
	}
}
