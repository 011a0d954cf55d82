package zygote

import (
	"context"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
)

// interpreterOf returns the process id of a session's interpreter, by the clock that the parent reads.
func interpreterOf(s *session) int { return int(^(int32(s.clock) >> 3)) }

func peakOf(t *testing.T, s *session, code string) int64 {
	t.Helper()
	result, err := s.Run(t.Context(), sandbox.Call{Code: code})
	require.NoError(t, err)
	return result.Timing.PeakMemory
}

func TestPeakMemoryOfCells(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		one, other := newSessionOf(t, s, quick), newSessionOf(t, s, quick)
		const much = 50 << 20
		first := peakOf(t, one, "1")
		require.Greater(t, first, int64(1<<20))
		require.Less(t, first, int64(much))
		large := peakOf(t, one, "x = b'x' * (50 << 20)\ndel x")
		require.Greater(t, large, int64(much))
		require.GreaterOrEqual(t, peakOf(t, one, "1"), large, "the peak is that of the session so far")
		require.Less(t, peakOf(t, other, "1"), int64(much), "and not that of another session")
		require.Greater(t, peakOf(t, other, "x = b'x' * (50 << 20)\nraise SystemExit"), int64(much),
			"an interpreter that ends tells it too")
	})
}

// An interpreter that is killed from outside is lost, not ended: its cells may be run again.
func TestKilledInterpreterLosesItsSession(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		for _, known := range []bool{false, true} { // before and after the parent knows of it
			one := newSessionOf(t, s, quick)
			cell(t, one, "x = 1")
			require.NoError(t, syscall.Kill(interpreterOf(one), syscall.SIGKILL))
			if known {
				<-one.gone
			}
			result, err := one.Run(context.Background(), sandbox.Call{Code: "x"})
			if err == nil { // the interpreter had read the cell
				require.Equal(t, sandbox.StatusKilled, result.Status)
				continue
			}
			require.ErrorIs(t, err, sandbox.ErrSessionLost)
			require.NotErrorIs(t, err, sandbox.ErrSessionEnded)
		}
		one := newSessionOf(t, s, quick)
		cell(t, one,
			"import threading, os, time\ndef end():\n    time.sleep(.05)\n    os._exit(3)\n"+
				"threading.Thread(target=end).start()")
		<-one.gone
		_, err := one.Run(context.Background(), sandbox.Call{Code: "1"})
		require.ErrorIs(t, err, sandbox.ErrSessionEnded, "one that exits has ended")
	})
}
