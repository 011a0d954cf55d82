package report_test

import (
	"context"
	"io"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/store/mem"
)

// BenchmarkReport50k makes the report of a run of 50,176 trajectories (98 steps of 64 groups of 8), as
// the quickstart would leave it: from an empty cache, and from one that holds what it needs.
func BenchmarkReport50k(b *testing.B) {
	objects := mem.New()
	recordtest.Large(b, objects, recordtest.LargeOptions{Run: "large", Steps: 98, Groups: 64, Samples: 8, Shards: 2, EvaluateEvery: 20, Problems: 513, Seed: 1})
	make50k := func(b *testing.B, cache string) {
		page, err := report.Gather(context.Background(), report.Options{Store: objects, Cache: cache, Run: "large"})
		require.NoError(b, err)
		require.NoError(b, page.WriteHTML(io.Discard))
	}
	b.Run("cold", func(b *testing.B) {
		busy := cpuSeconds()
		for range b.N {
			make50k(b, b.TempDir())
		}
		b.ReportMetric((cpuSeconds()-busy)/float64(b.N), "cpu-s/op")
	})
	b.Run("warm", func(b *testing.B) {
		cache := b.TempDir()
		make50k(b, cache)
		b.ResetTimer()
		busy := cpuSeconds()
		for range b.N {
			make50k(b, cache)
		}
		b.ReportMetric((cpuSeconds()-busy)/float64(b.N), "cpu-s/op")
	})
}

// cpuSeconds is what this process has used of its processors, which a busy machine does not change.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return math.NaN()
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
