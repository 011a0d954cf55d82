package zygote

import (
	"errors"
	"os"
	"testing"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
)

// openSessions returns sessions that the test closes, or skips where there is no Python or tier.
func openSessions(t testing.TB, o Options) *Sessions {
	t.Helper()
	o.Python = os.Getenv("ROPEWALK_TEST_PYTHON")
	s, err := OpenSessions(o)
	if errors.Is(err, sandbox.ErrNoPython) || o.Tier != "" && err != nil {
		t.Skipf("sessions cannot be opened: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// newCells opens one session with short limits.
func newCells(t testing.TB, s *Sessions, limits sandbox.Limits) sandbox.Session {
	t.Helper()
	one, err := s.OpenSession(t.Context(), "", limits)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, one.Close()) })
	return one
}

func cell(t testing.TB, s sandbox.Session, code string) sandbox.Result {
	t.Helper()
	result, err := s.Run(t.Context(), sandbox.Call{Code: code})
	require.NoError(t, err)
	result.Timing = sandbox.Timing{}
	return result
}

func TestSessionKeepsItsVariables(t *testing.T) {
	for _, tier := range sandbox.Tiers() {
		t.Run(string(tier), func(t *testing.T) {
			s := newCells(t, openSessions(t, Options{Tier: tier}), quick)
			require.Equal(t, sandbox.Result{Status: sandbox.StatusOK}, cell(t, s, "x = 20"))
			require.Equal(t, sandbox.Result{Status: sandbox.StatusOK, Value: "21"}, cell(t, s, "x += 1\nx"))
			require.Equal(t, sandbox.Result{Status: sandbox.StatusOK, Stdout: "21\n"}, cell(t, s, "print(x)"))
		})
	}
}

// BenchmarkSessionExec measures cells per second of one session.
func BenchmarkSessionExec(b *testing.B) {
	s := newCells(b, openSessions(b, Options{}), sandbox.Limits{})
	require.Equal(b, sandbox.StatusOK, cell(b, s, "x = 0").Status)
	call := sandbox.Call{Code: "x += 1"}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if got, err := s.Run(b.Context(), call); err != nil || got.Status != sandbox.StatusOK {
			b.Fatalf("got %+v, %v", got, err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "execs/s")
}
