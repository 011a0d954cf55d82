package rollout

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// openSandbox opens the real sandbox, or skips the test if there is no Python.
func openSandbox(t *testing.T) sandbox.Executor {
	t.Helper()
	e, err := zygote.Open(zygote.Options{Workers: 2})
	if errors.Is(err, sandbox.ErrNoPython) {
		t.Skipf("no Python for the sandbox: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// realSettings leave room for whole tracebacks.
func realSettings() Settings {
	s := settings
	s.MaxTokens = 320
	return s
}

// realLimits are the limits of calls in the real sandbox.
var realLimits = sandbox.Limits{CPU: 2 * time.Second, Wall: 60 * time.Second, MemoryBytes: 256 << 20,
	OutputBytes: 16 << 10}

// realBox holds the tool python over the real sandbox.
func realBox(e sandbox.Executor, limits sandbox.Limits) tool.Toolbox {
	return tool.Toolbox{tools.NewPython(e, limits)}
}

// Demonstrations in which calc's interpreter answers the programs that it knows are byte-equal to those in which real
// Python answers all programs.
func TestInterpreterGivesTheSandboxsResponses(t *testing.T) {
	executor := openSandbox(t)
	l := newLoop(t, realSettings(), 9)
	const n = 500
	script := taught(calc.DefaultNoise(), 2, 3, 4)
	whole, err := demonstrated(t, l, realBox(executor, realLimits), script, 0, n)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := demonstrated(t, l, realBox(sandbox.Known{Interpret: calc.Interpret, Next: executor},
		realLimits), script, 0, n)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole, quick); d != "" {
		t.Errorf("demonstrations (-sandbox +interpreter):\n%s", d)
	}
	known, statuses := 0, map[string]int{}
	tokens, failing := 0, 0
	for _, d := range whole {
		for i, turn := range d.Episode.Turns {
			for j, r := range turn.Results {
				statuses[r.Status]++
				if _, _, ok := calc.Interpret(turn.Parsed.Calls[j].Code); ok && turn.Parsed.Calls[j].Error == "" {
					known++
				}
				if r.Failed() && i+1 < len(d.Episode.Turns) {
					failing++
					tokens += len(d.Episode.Turns[i+1].Context)
				}
			}
		}
	}
	t.Logf("%d programs answered by both, verdicts %v; %.1f tokens a failing response",
		known, statuses, float64(tokens)/float64(max(failing, 1)))
	if known < 300 {
		t.Errorf("only %d programs were answered by both", known)
	}
}

// Every row of the protocol's table, with the real output of Python.
func TestEveryKindOfResponseFromTheSandbox(t *testing.T) {
	executor := openSandbox(t)
	l := newLoop(t, realSettings(), 9)
	for name, c := range map[string]struct{ code, status, body string }{
		"stdout":  {"print(12+3)", "ok", "Tool call success\nstdout: 15"},
		"value":   {"12+3", "ok", "Tool call success\nstdout: 15"},
		"nothing": {"x=12+3", "ok", "Tool call success"},
		"stdin":   {"print(input())", "runtime_error", ""},
		"raises":  {"raise SystemExit(3)", "runtime_error", "Tool call failure\nreason: "},
		"syntax":  {"print(1", "syntax_error", ""},
		"endless": {"while True: pass", "timeout_cpu", "Tool call failure\nreason: worker_timeout"},
		"flood":   {"while True: print('y'*1000)", "output_limit", ""},
	} {
		limits := realLimits
		limits.CPU = time.Second
		e := start(l)
		feed(t, l, e, protocol.CallResponse(c.code), "stop")
		if err := NewTools(realBox(executor, limits), tool.Scope{}).answer(t.Context(), l, []*Episode{e}); err != nil {
			t.Fatal(err)
		}
		r := e.Turns[0].Results[0]
		if r.Status != c.status || (c.body != "" && r.Body != c.body) {
			t.Errorf("%s: status %s, body %q", name, r.Status, r.Body)
		}
	}
}
