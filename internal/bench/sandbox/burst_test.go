package sandbox

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
)

// echo answers with what the last call of its code prints.
type echo struct{ printed string }

func (e echo) Run(context.Context, []sandbox.Call) ([]sandbox.Result, error) {
	return []sandbox.Result{{Status: sandbox.StatusOK, Stdout: e.printed}}, nil
}

func (echo) Close() error { return nil }

func TestVerdictsAreTheirOwn(t *testing.T) {
	s := subject{call: theCall, output: "45\n"}
	require.NoError(t, s.numbered(t.Context(), echo{"45\n17\n"}, 17))
	require.ErrorContains(t, s.numbered(t.Context(), echo{"45\n17\n"}, 18), `want "45\n18\n"`)
	require.ErrorContains(t, check(sandbox.Result{Status: sandbox.StatusRuntime, Stderr: "a\nValueError: b\n"}, ""),
		"ValueError: b")
}

func TestWatchSeesMemory(t *testing.T) {
	peak := watch(os.Getpid())
	most, err := peak()
	require.NoError(t, err)
	require.Greater(t, most, int64(1<<20))
	_, err = watch(-1)()
	require.Error(t, err)
}

func TestSidesTakeTurns(t *testing.T) {
	constant := func(name string, rate float64) side {
		return side{name: name, measure: func(context.Context, time.Duration) (float64, error) { return rate, nil }}
	}
	rates, err := interleave(t.Context(), []side{constant("ours", 900), constant("box", 150)}, 3, time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{900, 900, 900}, {150, 150, 150}}, rates)
}

func TestPartsThatFailLeaveTheReason(t *testing.T) {
	b := benchmark{program: "/nowhere/ropewalk", rounds: 1, report: &bench.Report{Dir: t.TempDir()}}
	require.NoError(t, b.measure(t.Context(), []string{"cold"}))
	require.Equal(t, []bench.Row{{What: "cold was not measured",
		Note: "/nowhere/ropewalk is not there (make build)"}}, b.report.Rows)
}
