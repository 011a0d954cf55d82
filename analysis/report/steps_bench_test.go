package report_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/folder"
	"github.com/ropewalk/ropewalk/store/mem"
)

// What a child of BenchmarkSteps does, and the folder of the record that it reads.
const (
	childWork   = "ROPEWALK_BENCH_CHILD"
	childRecord = "ROPEWALK_BENCH_FOLDER"
)

// recordsKept names a folder in which BenchmarkSteps leaves its drawn records for the next time.
const recordsKept = "ROPEWALK_BENCH_RECORDS"

// BenchmarkSteps makes the report of a long run and verifies it, each in a process of its own, whose processor time and
// peak memory are printed: of 250, 500 and 1,000 steps, of 8 trajectories each, to show how both grow.
func BenchmarkSteps(b *testing.B) {
	for _, steps := range []int{250, 500, 1000} {
		root := drawn(b, steps)
		for _, work := range []string{"report", "verify"} {
			b.Run(fmt.Sprintf("%s/%d", work, steps), func(b *testing.B) {
				cpu, peak := 0.0, int64(0)
				for range b.N {
					seconds, kib := child(b, work, root)
					cpu, peak = cpu+seconds, max(peak, kib)
				}
				b.ReportMetric(cpu/float64(b.N), "cpu-s/op")
				b.ReportMetric(float64(peak)/1024, "peak-MiB")
			})
		}
	}
}

// drawn is the folder of a drawn run of so many steps.
func drawn(b *testing.B, steps int) string {
	b.Helper()
	root := b.TempDir()
	if kept := os.Getenv(recordsKept); kept != "" {
		root = filepath.Join(kept, fmt.Sprint(steps))
		if _, err := os.Stat(root); err == nil {
			return root
		}
	}
	objects := mem.New()
	recordtest.Large(b, objects, recordtest.LargeOptions{Run: "large", Steps: steps, Groups: 2, Samples: 4, Shards: 1,
		EvaluateEvery: 50, Problems: 63, Seed: 1})
	recordtest.Unpack(b, objects, root)
	return root
}

// child does the work in a process of its own and returns what that took.
func child(b *testing.B, work, root string) (seconds float64, peakKiB int64) {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildOfBenchmarkSteps$", "-test.count=1")
	cmd.Env = append(os.Environ(), childWork+"="+work, childRecord+"="+root)
	out, err := cmd.CombinedOutput()
	require.NoError(b, err, string(out))
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds(), used.Maxrss
}

// TestChildOfBenchmarkSteps is the work of a child of BenchmarkSteps; by itself it does it on a short record.
func TestChildOfBenchmarkSteps(t *testing.T) {
	work, root := os.Getenv(childWork), os.Getenv(childRecord)
	if work == "" {
		objects := mem.New()
		recordtest.Large(t, objects, recordtest.LargeOptions{Run: "large", Steps: 2, Groups: 2, Samples: 2, Shards: 2,
			Problems: 3, Seed: 1})
		root = t.TempDir()
		recordtest.Unpack(t, objects, root)
	}
	if work != "verify" {
		page, err := report.Gather(context.Background(), analysis.New(folder.New(root)), "large", false)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, page.WriteHTML(&out))
		require.Contains(t, out.String(), "large")
	}
	if work != "report" {
		found, err := verify.Run(context.Background(), folder.New(root), "large")
		require.NoError(t, err)
		require.Empty(t, found.Faults)
	}
}
