package report_test

import (
	"bytes"
	"context"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// BenchmarkReport50k makes the report of a run of 50,176 trajectories (98 steps of 64 groups of 8), as
// the quickstart would leave it: from an empty cache and from one that holds what it needs, of a store
// in memory and of one that answers each request after a millisecond, as an S3 server nearby does.
func BenchmarkReport50k(b *testing.B) {
	objects := mem.New()
	recordtest.Large(b, objects, recordtest.LargeOptions{Run: "large", Steps: 98, Groups: 64, Samples: 8, Shards: 2, EvaluateEvery: 20, Problems: 513, Seed: 1})
	for _, s := range []struct {
		name string
		store.Store
	}{{"memory", objects}, {"1ms", distant{objects, time.Millisecond}}} {
		b.Run(s.name+"/cold", func(b *testing.B) {
			measure(b, s.Store, b.TempDir)
		})
		b.Run(s.name+"/warm", func(b *testing.B) {
			cache := b.TempDir()
			make50k(b, s.Store, cache)
			b.ResetTimer()
			measure(b, s.Store, func() string { return cache })
		})
	}
}

func measure(b *testing.B, objects store.Store, cache func() string) {
	busy, size := cpuSeconds(), 0
	for range b.N {
		size = make50k(b, objects, cache())
	}
	b.ReportMetric((cpuSeconds()-busy)/float64(b.N), "cpu-s/op")
	b.ReportMetric(float64(size), "page-bytes")
}

// make50k makes the page and returns its size.
func make50k(b *testing.B, objects store.Store, cache string) int {
	page, err := report.Gather(context.Background(), report.Options{Store: objects, Cache: cache, Run: "large"})
	require.NoError(b, err)
	var out bytes.Buffer
	require.NoError(b, page.WriteHTML(&out))
	return out.Len()
}

// distant is a store whose requests take some time to travel.
type distant struct {
	store.Store
	away time.Duration
}

func (d distant) Get(ctx context.Context, key string) ([]byte, error) {
	time.Sleep(d.away)
	return d.Store.Get(ctx, key)
}

func (d distant) List(ctx context.Context, prefix string) ([]store.Object, error) {
	time.Sleep(d.away)
	return d.Store.List(ctx, prefix)
}

// cpuSeconds is what this process has used of its processors, which a busy machine does not change.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return math.NaN()
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
