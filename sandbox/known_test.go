package sandbox

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
)

// numbered answers each call with its code, so that a result in the wrong place is visible.
type numbered struct{ calls int }

func (n *numbered) Run(_ context.Context, calls []Call) ([]Result, error) {
	results := make([]Result, len(calls))
	for i, c := range calls {
		if c.Code == "break" {
			return nil, errors.New("broken")
		}
		results[i] = Result{Status: StatusRuntime, Stderr: c.Code}
		n.calls++
	}
	return results, nil
}

func (n *numbered) Close() error { return nil }

func TestKnownProgramsAreNotRun(t *testing.T) {
	next := &numbered{}
	known := Known{Next: next, Interpret: func(code string) (stdout, value string, known bool) {
		number, printed := strings.CutPrefix(code, "print ")
		return number + "\n", "", printed
	}}
	var calls []Call
	for i := range 6 {
		code := "unknown" + strconv.Itoa(i)
		if i%2 == 0 {
			code = "print " + strconv.Itoa(i)
		}
		calls = append(calls, Call{Code: code})
	}
	results, err := known.Run(t.Context(), calls)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if i%2 == 0 && r.Stdout != strconv.Itoa(i)+"\n" || i%2 == 1 && r.Stderr != calls[i].Code {
			t.Errorf("call %d got %+v", i, r)
		}
	}
	if next.calls != 3 {
		t.Errorf("%d calls were passed on, want 3", next.calls)
	}
	if _, err := known.Run(t.Context(), []Call{{Code: "print 1"}, {Code: "break"}}); err == nil {
		t.Error("breakage of the next executor was lost")
	}
}
