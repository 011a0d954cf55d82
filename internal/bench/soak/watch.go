package soak

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

const (
	samplesAimed  = 300 // for the whole length
	leastInterval = 250 * time.Millisecond
	linesAimed    = 30 // lines of progress
)

// sample is the usage at a time.
type sample struct {
	at time.Duration // since the start
	bench.Usage
}

// watch samples until ctx ends, and prints progress.
func watch(ctx context.Context, l *load, length time.Duration) (all []sample, err error) {
	began, shown := time.Now(), time.Duration(0)
	err = bench.Sample(ctx, os.Getpid(), max(length/samplesAimed, leastInterval), func(u bench.Usage) {
		s := sample{at: time.Since(began), Usage: u}
		all = append(all, s)
		if s.at >= shown+length/linesAimed {
			shown = s.at
			fmt.Printf("%7.0f s %9d calls, this process %4.0f MiB, interpreters %4.0f MiB, %3d processes, %d "+
				"zombies, %4d descriptors, %2d mounts, tmpfs %.1f MiB\n",
				s.at.Seconds(), l.calls.Load(), mebibytes(u.Root), mebibytes(u.Others), u.Processes, u.Zombies,
				u.Descriptors, u.Mounts, mebibytes(u.Tmpfs))
		}
	})
	return all, err
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// settleWithin is how long processes may take to end after the executor is closed.
const settleWithin = 5 * time.Second

// settle waits until nothing is left of what was started, at most for settleWithin.
func settle(before bench.Usage) (bench.Usage, error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		after, err := bench.Tree(os.Getpid())
		if err != nil || len(left(before, after)) == 0 || time.Since(began) > settleWithin {
			return after, err
		}
	}
}

// spareDescriptors is how many descriptors the Go runtime opens once and keeps, for its poller.
const spareDescriptors = 4

// left names everything that there is more of than before the executor was opened.
func left(before, after bench.Usage) []string {
	var all []string
	more := func(what string, was, is, spare int) {
		if is > was+spare {
			all = append(all, fmt.Sprintf("%d %s, before %d", is, what, was))
		}
	}
	more("processes", before.Processes, after.Processes, 0)
	more("zombies", before.Zombies, after.Zombies, 0)
	more("descriptors", before.Descriptors, after.Descriptors, spareDescriptors)
	more("mounts", before.Mounts, after.Mounts, 0)
	return all
}

// quantity is a resource in use, and how much it may grow during the second half: by an absolute bound above the
// samples' noise, or by a share of its median.
type quantity struct {
	what  string
	of    func(bench.Usage) float64
	bound float64
	share float64
}

func quantities() []quantity {
	return []quantity{
		{"this process, MiB", func(u bench.Usage) float64 { return mebibytes(u.Root) }, 8, 0.05},
		{"interpreters, MiB", func(u bench.Usage) float64 { return mebibytes(u.Others) }, 16, 0.05},
		{"processes", func(u bench.Usage) float64 { return float64(u.Processes) }, 2, 0},
		{"zombies", func(u bench.Usage) float64 { return float64(u.Zombies) }, 1, 0},
		{"descriptors", func(u bench.Usage) float64 { return float64(u.Descriptors) }, 4, 0.05},
		{"mounts", func(u bench.Usage) float64 { return float64(u.Mounts) }, 0.5, 0},
		{"temporary file systems, MiB", func(u bench.Usage) float64 { return mebibytes(u.Tmpfs) }, 1, 0},
	}
}

// grown returns how much each quantity grew during the second half, which its bound limits.
func grown(samples []sample, length time.Duration) (all []bench.Row) {
	half := length / 2
	var x []float64
	var second []sample
	for _, s := range samples {
		if s.at >= half {
			x, second = append(x, s.at.Seconds()), append(second, s)
		}
	}
	if len(second) == 0 {
		return nil
	}
	for _, q := range quantities() {
		var y []float64
		for _, s := range second {
			y = append(y, q.of(s.Usage))
		}
		middle := bench.Median(y)
		growth := bench.Of("growth", bench.Slope(x, y)*half.Seconds()).AtMost(max(q.bound, q.share*middle))
		all = append(all, bench.Row{What: q.what, Figures: []bench.Figure{bench.Of("median", middle), growth}})
	}
	return all
}
