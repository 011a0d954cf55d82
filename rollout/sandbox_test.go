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
)

// openSandbox opens the real sandbox, or skips where there is no Python.
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

// realSettings leave room for whole tracebacks, and time for a loaded machine.
func realSettings() Settings {
	s := settings
	s.MaxTokens = 320
	s.CallLimits = sandbox.Limits{CPU: 2 * time.Second, Wall: 60 * time.Second, MemoryBytes: 256 << 20, OutputBytes: 16 << 10}
	return s
}

// Demonstrations answered by calc's interpreter where it knows the program are, to the byte, those
// that real Python answers throughout.
func TestInterpreterGivesTheSandboxsResponses(t *testing.T) {
	python := openSandbox(t)
	l := newLoop(t, realSettings(), 9)
	const n = 500
	shares := calc.EqualShares(2, 3, 4)
	whole, err := l.Demonstrations(t.Context(), python, shares, calc.DefaultNoise(), 0, n, nil)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := l.Demonstrations(t.Context(), calc.Interpreter{Next: python}, shares, calc.DefaultNoise(), 0, n, nil)
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

// Every row of the protocol's table, with what Python really says.
func TestEveryKindOfResponseFromTheSandbox(t *testing.T) {
	python := openSandbox(t)
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
		s := realSettings()
		s.CallLimits.CPU = time.Second
		quick := newLoop(t, s, 9)
		e := start(quick)
		feed(t, l, e, protocol.CallResponse(c.code), "stop")
		calls, _ := quick.PendingCalls([]*Episode{e})
		results, err := python.Run(t.Context(), calls)
		if err != nil {
			t.Fatal(err)
		}
		if err := quick.AbsorbResults([]*Episode{e}, results); err != nil {
			t.Fatal(err)
		}
		r := e.Turns[0].Results[0]
		if r.Status != c.status || (c.body != "" && r.Body != c.body) {
			t.Errorf("%s: status %s, body %q", name, r.Status, r.Body)
		}
	}
}
