package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of processor times in /proc: sysconf(_SC_CLK_TCK), which is 100 on every Linux.
const ticksPerSecond = 100

// Meter samples how much processor time all processes of a program have used, with their descendants and those that
// have ended. Make one with Watch.
type Meter struct {
	mu      sync.Mutex
	samples []usedBy // in order of time

	// tree is the program's processes and their descendants, when they were last looked for, without those that have
	// ended since.
	tree   map[int]*os.File // /proc/PID/stat, by PID
	looked time.Time
	buffer [4096]byte
}

// usedBy is the processor time in seconds that was used up to a time.
type usedBy struct {
	at   time.Time
	used float64
}

// MeterPeriod is the usual time between two samples of Watch. The times in /proc have steps of 10 ms. What a sample
// takes, a third of a millisecond where the processors are busy, is taken from what is measured. So files stay open
// between samples.
const MeterPeriod = 25 * time.Millisecond

// lookPeriod is the time between two looks at all processes, once the program is found. A look at a hundred processes
// takes milliseconds, which a look at every sample would take from the program that is measured. A process that lives
// for a shorter time counts once its parent has collected it.
const lookPeriod = 2 * time.Second

// Watch samples the processes whose command line is a path with the given arguments, until ctx ends. Processes that
// start later count from their start. Runs may be so long that samples each MeterPeriod cost more than they tell.
func Watch(ctx context.Context, period time.Duration, path string, args ...string) *Meter {
	m := &Meter{tree: map[int]*os.File{}}
	want := strings.Join(append([]string{path}, args...), "\x00")
	go func() {
		defer func() { m.forget(slices.Collect(maps.Keys(m.tree))...) }()
		for ctx.Err() == nil {
			m.sample(want)
			select {
			case <-ctx.Done():
			case <-time.After(period):
			}
		}
	}()
	return m
}

func (m *Meter) sample(want string) {
	now := time.Now()
	if len(m.tree) == 0 || now.Sub(m.looked) >= lookPeriod {
		if err := m.look(want); err != nil {
			return // the next sample has its time
		}
		m.looked = now
	}
	var used float64
	for pid, file := range m.tree {
		n, err := file.ReadAt(m.buffer[:], 0)
		if err != nil && !errors.Is(err, io.EOF) { // it has ended, and is in its parent's time
			m.forget(pid)
			continue
		}
		used += float64(ticksOf(m.buffer[:n])) / ticksPerSecond
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.samples); n > 0 {
		used = max(used, m.samples[n-1].used) // a descendant that has ended and was not collected yet
	}
	m.samples = append(m.samples, usedBy{now, used})
}

// look opens the files of processes that it has not seen, and closes those of others.
func (m *Meter) look(want string) error {
	tree, err := treesOf(want)
	if err != nil {
		return err
	}
	for pid := range m.tree {
		if !slices.Contains(tree, pid) {
			m.forget(pid)
		}
	}
	for _, pid := range tree {
		if m.tree[pid] != nil {
			continue
		}
		if file, err := os.Open(filepath.Join(proc(pid), "stat")); err == nil { // else it has ended
			m.tree[pid] = file
		}
	}
	return nil
}

// forget closes the files of processes.
func (m *Meter) forget(pids ...int) {
	for _, pid := range pids {
		_ = m.tree[pid].Close() // it was only read
		delete(m.tree, pid)
	}
}

// treesOf returns the processes whose command line begins with want, and their descendants.
func treesOf(want string) (tree []int, err error) {
	all, err := readProcesses()
	if err != nil {
		return nil, err
	}
	for root, p := range all {
		line, _ := p.CmdLine() // empty if it has ended
		if !strings.HasPrefix(strings.Join(line, "\x00"), want) {
			continue
		}
		for pid := range all {
			if descends(all, pid, root) && !slices.Contains(tree, pid) {
				tree = append(tree, pid)
			}
		}
	}
	return tree, nil
}

// Used returns the processor seconds that were used between two times.
func (m *Meter) Used(from, to time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, m.by(to)-m.by(from))
}

// by returns the processor seconds up to a time, on a straight line between two samples.
func (m *Meter) by(t time.Time) float64 {
	for i, s := range m.samples {
		if s.at.Before(t) {
			continue
		}
		if i == 0 {
			return s.used
		}
		before := m.samples[i-1]
		share := float64(t.Sub(before.at)) / float64(s.at.Sub(before.at))
		return before.used + share*(s.used-before.used)
	}
	if n := len(m.samples); n > 0 {
		return m.samples[n-1].used
	}
	return 0
}

// ticksOf sums the processor times of a process and of its children that it has collected, from a line as
// proc_pid_stat(5) gives it. The name, in parentheses, may hold anything.
func ticksOf(line []byte) (ticks int64) {
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	const user, collected = 11, 14 // fields 14 and 17 of the man page
	for i := user; i <= min(collected, len(fields)-1); i++ {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		ticks += n
	}
	return ticks
}

// ProcessorTime is the processor time that all threads of this process have used so far. A busy machine stretches it
// less than the clock does.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
