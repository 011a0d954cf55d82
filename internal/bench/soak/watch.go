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
func watch(ctx context.Context, l *load, length time.Duration) ([]sample, error) {
	interval := max(length/samplesAimed, leastInterval)
	var all []sample
	began, shown := time.Now(), time.Duration(0)
	for tick := time.NewTicker(interval); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return all, nil
		case <-tick.C:
		}
		u, err := bench.Tree(os.Getpid())
		if err != nil {
			return nil, err
		}
		s := sample{at: time.Since(began), Usage: u}
		all = append(all, s)
		if s.at >= shown+length/linesAimed {
			shown = s.at
			fmt.Printf("%7.0f s %9d calls, this process %4.0f MiB, interpreters %4.0f MiB, %3d processes, %d "+
				"zombies, %4d descriptors, %2d mounts, tmpfs %.1f MiB\n",
				s.at.Seconds(), l.calls.Load(), mebibytes(u.Root), mebibytes(u.Others), u.Processes, u.Zombies,
				u.Descriptors, u.Mounts, mebibytes(u.Tmpfs))
		}
	}
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
