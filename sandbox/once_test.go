package sandbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/sandbox"
)

// echo answers each call with the call's own code and records the calls.
type echo struct {
	got    []sandbox.Call
	fail   error
	closed bool
}

func (e *echo) Run(_ context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	e.got = append(e.got, calls...)
	out := make([]sandbox.Result, len(calls))
	for i, c := range calls {
		out[i] = sandbox.Result{Status: sandbox.StatusOK, Stdout: c.Code + c.Stdin,
			Timing: sandbox.Timing{CPU: time.Second}}
	}
	return out, e.fail
}

func (e *echo) Close() error { e.closed = true; return nil }

func TestIdenticalCallsRunOnce(t *testing.T) {
	under := &echo{}
	a, b := sandbox.Call{Code: "a"}, sandbox.Call{Code: "b"}
	other := sandbox.Call{Code: "a", Stdin: "x"}
	limited := sandbox.Call{Code: "a", Limits: sandbox.Limits{CPU: time.Second}}
	results, err := sandbox.NewOnce(under).Run(context.Background(), []sandbox.Call{a, b, a, other, b, limited})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]sandbox.Call{a, b, other, limited}, under.got); d != "" {
		t.Errorf("passed on: %s", d)
	}
	var texts []string
	var spent time.Duration
	for _, r := range results {
		texts = append(texts, r.Stdout)
		spent += r.Timing.CPU
	}
	if d := cmp.Diff([]string{"a", "b", "a", "ax", "b", "a"}, texts); d != "" {
		t.Errorf("results: %s", d)
	}
	if spent != 4*time.Second {
		t.Errorf("timings sum to %v, want what the four executions took", spent)
	}
}

func TestBreakageIsPassedOn(t *testing.T) {
	under := &echo{fail: errors.New("broken")}
	_, err := sandbox.NewOnce(under).Run(context.Background(), []sandbox.Call{{Code: "a"}})
	if !errors.Is(err, under.fail) {
		t.Fatalf("got %v, want the breakage", err)
	}
}

func TestCloseClosesTheNextExecutor(t *testing.T) {
	under := &echo{}
	if err := sandbox.NewOnce(under).Close(); err != nil || !under.closed {
		t.Fatalf("close: %v, closed %v", err, under.closed)
	}
}
