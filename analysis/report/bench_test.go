package report_test

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/folder"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/store/s3"
)

// BenchmarkReport50k makes the report of a run of 50,176 trajectories (98 steps of 64 groups of 8), as
// the quickstart would leave it: of the local stack's folder, and with an empty cache and one that
// holds what it needs of a real S3 server on this machine and of a store whose answers take a
// millisecond, as those of a server nearby do.
func BenchmarkReport50k(b *testing.B) {
	objects := mem.New()
	recordtest.Large(b, objects, recordtest.LargeOptions{Run: "large", Steps: 98, Groups: 64, Samples: 8, Shards: 2,
		EvaluateEvery: 20, Problems: 513, Seed: 1})
	server := storetest.Versitygw(b)
	const bucket = "record"
	root := filepath.Join(server.Folder, bucket)
	recordtest.Unpack(b, objects, root)
	through, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: bucket, AccessKey: server.AccessKey,
		SecretKey: server.SecretKey})
	require.NoError(b, err)
	b.Run("folder", func(b *testing.B) {
		measure(b, folder.New(root), b.TempDir)
	})
	for _, s := range []struct {
		name string
		store.Store
	}{{"s3", through}, {"1ms", distant{objects, time.Millisecond}}} {
		b.Run(s.name+"/cold", func(b *testing.B) {
			measure(b, s.Store, b.TempDir)
		})
		b.Run(s.name+"/warm", func(b *testing.B) {
			dir := b.TempDir()
			make50k(b, s.Store, dir)
			b.ResetTimer()
			measure(b, s.Store, func() string { return dir })
		})
	}
}

// BenchmarkFigures reads what the figures of a run of 85 steps show, as the page of `ropewalk view` does at first, and
// puts the same questions to one session of `ropewalk sql`.
func BenchmarkFigures(b *testing.B) {
	objects, root := mem.New(), b.TempDir()
	recordtest.Large(b, objects, recordtest.LargeOptions{Run: "large", Steps: 85, Groups: 64, Samples: 8, Shards: 8,
		EvaluateEvery: 20, Problems: 513, Seed: 1})
	recordtest.Unpack(b, objects, root)
	ctx, record := context.Background(), folder.New(root)
	gather := func(figures bool) *report.Page {
		page, err := report.Gather(ctx, analysis.New(record), "large", figures)
		require.NoError(b, err)
		return page
	}
	var questions []string
	for _, s := range gather(true).Sections {
		for _, f := range s.Figures {
			for _, q := range f.Questions {
				if !slices.Contains(questions, q.SQL) {
					questions = append(questions, q.SQL)
				}
			}
		}
	}
	ask := func() {
		session, err := sql.Open(ctx, analysis.New(record), []string{"large"}, questions...)
		require.NoError(b, err)
		for _, q := range questions {
			_, err := session.Ask(ctx, q)
			require.NoError(b, err)
		}
		require.NoError(b, session.Close())
	}
	for name, read := range map[string]func(){"report": func() { gather(false) }, "figures": func() { gather(true) },
		"sql": ask} {
		b.Run(name, func(b *testing.B) {
			busy := cpuSeconds()
			for range b.N {
				read()
			}
			b.ReportMetric((cpuSeconds()-busy)/float64(b.N), "cpu-s/op")
		})
	}
}

func measure(b *testing.B, objects store.Store, dir func() string) {
	busy, size := cpuSeconds(), 0
	for range b.N {
		size = make50k(b, objects, dir())
	}
	b.ReportMetric((cpuSeconds()-busy)/float64(b.N), "cpu-s/op")
	b.ReportMetric(float64(size), "page-bytes")
}

// make50k makes the page and returns its size.
func make50k(b *testing.B, objects store.Store, dir string) int {
	files, err := analysis.OpenCache(dir)
	require.NoError(b, err)
	page, err := report.Gather(context.Background(), analysis.New(objects).WithCache(files), "large", false)
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
