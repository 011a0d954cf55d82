package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/tooltest"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

var errBroke = errors.New("zygote is gone")

// echo is a sandbox whose programs print themselves. "raise" fails and "break" has no verdict.
type echo struct{ broken bool }

func (e echo) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	results, broken := make([]sandbox.Result, len(calls)), make(sandbox.CallErrors, len(calls))
	for i, c := range calls {
		results[i] = sandbox.Result{Status: sandbox.StatusOK, Stdout: c.Code + c.Stdin,
			Timing: sandbox.Timing{Queue: 1, Wall: 2, CPU: 3}}
		switch {
		case e.broken || c.Code == "break":
			results[i], broken[i] = sandbox.Result{}, errBroke
		case c.Code == "raise":
			results[i] = sandbox.Result{Status: sandbox.StatusRuntime, ExitCode: 1, Stderr: "ValueError"}
		}
	}
	if len(broken.Unwrap()) > 0 {
		return results, broken
	}
	return results, nil
}

func (echo) Close() error { return nil }

// counters are sessions whose cells count themselves.
type counters struct{ broken bool }

func (c counters) OpenSession(context.Context, string, sandbox.Limits) (sandbox.Session, error) {
	if c.broken {
		return nil, errBroke
	}
	return &counter{}, nil
}

type counter struct{ cells int }

func (c *counter) Run(_ context.Context, cell sandbox.Call) (sandbox.Result, error) {
	switch cell.Code {
	case "break":
		return sandbox.Result{}, errBroke
	case "6 * 7": // the pool asks whether sessions work
		return sandbox.Result{Status: sandbox.StatusOK, Value: "42"}, nil
	}
	c.cells++
	return sandbox.Result{Status: sandbox.StatusOK, Value: fmt.Sprintf("%d %s", c.cells, cell.Code)}, nil
}

func (*counter) Close() error { return nil }

func notebooksOf(t *testing.T, s sandbox.Sessions) tool.Tool {
	t.Helper()
	pool := session.New(s, session.Settings{Most: 64})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	got, err := tools.Python.Open(tools.Host{Notebooks: pool, AtOnce: 4})
	require.NoError(t, err)
	return got
}

var programs = []string{`{"code": "1"}`, `{"code": "2", "input": "x"}`, `{"code": "raise"}`}

func TestPythonConforms(t *testing.T) {
	for name, s := range map[string]tooltest.Subject{
		"programs": {Tool: tools.NewPython(echo{}, sandbox.Limits{}),
			Broken: tools.NewPython(echo{broken: true}, sandbox.Limits{})},
		"notebooks": {Tool: notebooksOf(t, counters{}), Broken: notebooksOf(t, counters{broken: true})},
	} {
		t.Run(name, func(t *testing.T) {
			s.Good, s.Breaking = programs, `{"code": "break"}`
			tooltest.Run(t, s)
		})
	}
}

// The names that rStar2's protocol writes are aliases of the tool, and every verdict of the sandbox is one of a tool.
func TestPythonKnowsTheProtocolsNamesAndTheSandboxsVerdicts(t *testing.T) {
	for _, name := range []string{protocol.ToolName, protocol.ToolNameCode} {
		s, ok := tool.Find(tools.Specs(tools.All), name)
		require.True(t, ok, name)
		require.Equal(t, "python", s.Name)
	}
	for _, s := range sandbox.Statuses() {
		require.Equal(t, s.Breakage(), !tool.Status(s).IsVerdict(), "status %s", s)
	}
}

// The arguments that a tool rejects are those that the protocol's parser rejects, in the same words.
func TestPythonRejectsWhatTheProtocolRejects(t *testing.T) {
	python := tools.NewPython(echo{}, sandbox.Limits{})
	for _, arguments := range []string{`[]`, `null`, `{}`, `{"code": 1}`, `{"code": null}`,
		`{"code": "1", "input": []}`,
		`{"code": "1", "input": null}`, `{"code": "1", "z": 1, "b": 2}`, `{"Code": "1"}`, `{"code": "1"}`,
		`{"code": "\ud800", "input": "\u0000"}`} {
		text := `<tool_call>{"name": "` + protocol.ToolName + `", "arguments": ` + arguments + `}</tool_call>`
		parsed := protocol.RStar2{}.Parse(text, nil).Calls[0]
		got, err := python.Run(t.Context(), []tool.Call{{Tool: "python", Arguments: json.RawMessage(arguments)}})
		require.NoError(t, err)
		if parsed.Error == "" {
			require.Equal(t, tool.Result{Status: tool.OK, Stdout: parsed.Code + parsed.Stdin,
				Timing: tool.Timing{Queue: 1, Wall: 2, CPU: 3}}, got[0])
			continue
		}
		require.Equal(t, string(parsed.Error), string(got[0].Status), arguments)
		require.Equal(t, parsed.Message, got[0].Stderr, arguments)
	}
	require.JSONEq(t, `{"code": "<a>\n", "input": "é"}`, string(tools.PythonArguments("<a>\n", "é")))
}

func TestLimitsAndTracesReachTheSandbox(t *testing.T) {
	limits := sandbox.Limits{CPU: time.Second}
	seen := make(chan sandbox.Call, 1)
	python := tools.NewPython(recorder{seen}, limits)
	_, err := python.Run(t.Context(), []tool.Call{{Trace: "t/0/1", Arguments: tools.PythonArguments("1", "in")}})
	require.NoError(t, err)
	require.Equal(t, sandbox.Call{Code: "1", Stdin: "in", Limits: limits, Trace: "t/0/1"}, <-seen)
}

// With exact carets a program's last line has an end. Python then puts the carets under the code that they mean, in
// programs and in cells.
func TestExactCarets(t *testing.T) {
	for code, want := range map[string]string{"x = 1\nx / 0": "x = 1\nx / 0\n", "1\n": "1\n"} {
		seen := make(chan sandbox.Call, 1)
		python, err := tools.Python.Open(tools.Host{Sandbox: recorder{seen}, ExactCarets: true})
		require.NoError(t, err)
		_, err = python.Run(t.Context(), []tool.Call{{Arguments: tools.PythonArguments(code, "")}})
		require.NoError(t, err)
		require.Equal(t, want, (<-seen).Code)
	}

	pool := session.New(zygotetest.Sessions(t), session.Settings{Most: 2})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	notebooks, err := tools.Python.Open(tools.Host{Notebooks: pool, AtOnce: 1, ExactCarets: true})
	require.NoError(t, err)
	got, err := notebooks.Run(t.Context(), []tool.Call{{Key: tool.Key{Label: "sample"},
		Arguments: tools.PythonArguments("x = 1\nprint(x / 0)", "")}})
	require.NoError(t, err)
	require.Contains(t, got[0].Stderr, "    print(x / 0)\n")
	if strings.Contains(got[0].Stderr, "^") { // Python before 3.11 writes none
		require.Contains(t, got[0].Stderr, "    print(x / 0)\n          ~~^~~\n")
	}
}

type recorder struct{ seen chan sandbox.Call }

func (r recorder) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	r.seen <- calls[0]
	return echo{}.Run(ctx, calls)
}

func (recorder) Close() error { return nil }

// Cells continue an episode's interpreter. A call with bad arguments is no cell. An interpreter that is gone is rebuilt
// from the earlier calls, and an episode whose cells end differently breaks.
func TestNotebooksAreCachesOfTheRecord(t *testing.T) {
	key := func(turn, call int) tool.Key { return tool.Key{Label: "sample", Turn: turn, Call: call} }
	call := func(turn, i int, arguments string, past ...tool.Ran) tool.Call {
		return tool.Call{Key: key(turn, i), Tool: "python", Arguments: json.RawMessage(arguments), Past: past}
	}
	first := []tool.Call{call(0, 0, `{"code": "a"}`), call(0, 1, `{"cod": "b"}`), call(0, 2, `{"code": "c"}`)}
	here := notebooksOf(t, counters{})
	got, err := here.Run(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, []string{"1 a", "", "2 c"}, []string{got[0].Value, got[1].Value, got[2].Value})
	require.Equal(t, tool.BadArguments, got[1].Status)

	var past []tool.Ran
	for i, c := range first {
		past = append(past, tool.Ran{Call: c, Result: got[i].Untimed()})
	}
	for name, n := range map[string]tool.Tool{"the same worker": here, "another worker": notebooksOf(t, counters{})} {
		got, err := n.Run(t.Context(), []tool.Call{call(1, 0, `{"code": "d"}`, past...)})
		require.NoError(t, err, name)
		require.Equal(t, "3 d", got[0].Value, name)
		require.NoError(t, tool.Toolbox{n}.End(t.Context(), key(0, 0).Episode()), name)
		require.NoError(t, tool.Toolbox{n}.End(t.Context(), key(0, 0).Episode()), "an episode that has ended: %s", name)
	}

	past[2].Result.Value = "another"
	_, err = here.Run(t.Context(), []tool.Call{call(1, 0, `{"code": "d"}`, past...)})
	var broken tool.CallErrors
	require.ErrorAs(t, err, &broken)
	require.EqualError(t, broken[0], "session lost: cell 2 had another value when run again")
	require.True(t, strings.HasPrefix(err.Error(), "1 of 1 calls broke"), err.Error())
}
