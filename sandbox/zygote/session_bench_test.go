package zygote

import (
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
)

// BenchmarkSessionExec measures cells per second of one session.
func BenchmarkSessionExec(b *testing.B) {
	s := newSessionOf(b, openSessions(b, Options{}), sandbox.Limits{})
	require.Equal(b, sandbox.StatusOK, cell(b, s, "x = 0").Status)
	call := sandbox.Call{Code: "x += 1"}
	b.ReportAllocs()
	before, theirs := ownCPU(), time.Duration(0)
	b.ResetTimer()
	for range b.N {
		got, err := s.Run(b.Context(), call)
		if err != nil || got.Status != sandbox.StatusOK {
			b.Fatalf("got %+v, %v", got, err)
		}
		theirs += got.Timing.CPU
	}
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N) / 1e3 }
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "execs/s")
	// These do not depend on the load of the machine: the CPU time of the parent and of the interpreter.
	b.ReportMetric(each(ownCPU()-before), "parent-µs/op")
	b.ReportMetric(each(theirs), "session-µs/op")
}
