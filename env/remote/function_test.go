package remote

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// called calls a function of testdata/scoring.py with answers.
func called(t *testing.T, s FunctionSettings, answers ...string) ([]Scored, error) {
	t.Helper()
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	path, err := filepath.Abs("testdata")
	require.NoError(t, err)
	s.Path = path
	if s.Seconds == 0 {
		s.Seconds = 30
	}
	rows := make([]map[string]any, len(answers))
	for i, a := range answers {
		rows[i] = map[string]any{"answer": a, "gold": "yes"}
	}
	f := &Functions{}
	t.Cleanup(func() {
		for _, fn := range f.all {
			if fn.held {
				fn.now.kill(errIdle)
			}
		}
	})
	return f.Score(t.Context(), s, rows, func(int, int) {})
}

// texts renders results, so that tables are easy to read.
func texts(all []Scored) (out []string) {
	for _, s := range all {
		switch {
		case s.Broken != nil:
			out = append(out, "broken")
		case s.Success != nil:
			out = append(out, fmt.Sprintf("%g %t", s.Score, *s.Success))
		default:
			out = append(out, fmt.Sprintf("%g", s.Score))
		}
	}
	return out
}

func TestFunctionsScore(t *testing.T) {
	for _, batch := range []bool{false, true} {
		module := map[bool]string{false: "scoring:one", true: "scoring:several"}[batch]
		got, err := called(t, FunctionSettings{Module: module, Batch: batch, Kwargs: `{"scale": 2}`}, "yes", "no",
			"pair", "bool")
		require.NoError(t, err)
		require.Equal(t, []string{"2", "0", "0.5 true", "1"}, texts(got))
	}
}

// A call that breaks has no result. The trajectories around it have theirs, also if they are in one batch.
func TestFunctionsThatBreak(t *testing.T) {
	for _, fault := range []string{"raise", "nan", "text", "none", "triple", "exit", "hang"} {
		for _, batch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", fault, batch), func(t *testing.T) {
				module := map[bool]string{false: "scoring:one", true: "scoring:several"}[batch]
				s := FunctionSettings{Module: module, Batch: batch}
				if fault == "hang" {
					s.Seconds = 2
				}
				got, err := called(t, s, "yes", fault, "no")
				require.NoError(t, err)
				require.Equal(t, []string{"1", "broken", "0"}, texts(got))
			})
		}
	}
}

// If all of several trajectories break, the function itself is at fault: the stage fails, after a few calls.
func TestAHopelessFunction(t *testing.T) {
	many := make([]string, 50)
	for i := range many {
		many[i] = "raise"
	}
	for _, s := range []FunctionSettings{{Module: "scoring:one"}, {Module: "scoring:several", Batch: true},
		{Module: "scoring:short", Batch: true}} {
		_, err := called(t, s, many...)
		require.ErrorContains(t, err, "gave no result for")
		var own CodeError
		require.ErrorAs(t, err, &own)
	}
	_, err := called(t, FunctionSettings{Module: "scoring:one"}, "raise")
	require.NoError(t, err, "one trajectory may be at fault itself")
	for want, s := range map[string]FunctionSettings{
		"reward.module: must be package:name": {Module: "scoring"}, "reward.module: names no function": {},
		"reward.kwargs: must be a JSON object": {Module: "a:b", Kwargs: "[]"},
	} {
		_, err := called(t, s, "yes")
		require.ErrorContains(t, err, want)
	}
}
