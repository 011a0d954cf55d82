package torch

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// tree are the processes of an engine: the one that was started, which under torchrun is its agent, and the ranks, which
// torchrun puts into sessions of their own, out of reach of the agent's process group.
type tree struct {
	root  int
	ranks []*os.Process // handles, which do not go over to another process with the same id
}

// findRanks notes who this host's ranks are; under torchrun, once all of them are there.
func (t *tree) findRanks(torchrun bool) {
	pids := []int{t.root}
	if torchrun {
		pids = children(t.root)
	}
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			t.ranks = append(t.ranks, p)
		}
	}
}

// signalRanks sends a signal to every rank that lives.
func (t *tree) signalRanks(s syscall.Signal) {
	for _, p := range t.ranks {
		_ = p.Signal(s) // it may have ended
	}
}

// kill ends every process of the tree; there may be none left.
func (t *tree) kill() {
	below := descendants(t.root)
	killGroup(t.root)
	for _, pid := range below {
		killGroup(pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	// Ranks whose agent has died are nobody's descendants any more.
	for _, p := range t.ranks {
		if p.Signal(syscall.Signal(0)) == nil {
			killGroup(p.Pid)
			_ = p.Kill()
		}
	}
}

// killGroup kills the process group that a process leads, if it leads one.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// gone waits until no rank lives: what they held (devices, memory) is free then.
func (t *tree) gone(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		living := parents() // without those that have ended and only wait to be buried
		alive := slices.ContainsFunc(t.ranks, func(p *os.Process) bool {
			_, there := living[p.Pid]
			return there && p.Signal(syscall.Signal(0)) == nil
		})
		if !alive || time.Now().After(deadline) {
			return !alive
		}
	}
}

// parents maps every living process to its parent.
func parents() map[int]int {
	out := map[int]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent …; a name may hold anything, so what counts comes after its last bracket.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 || string(fields[0]) == "Z" {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			out[pid] = parent
		}
	}
	return out
}

func children(of int) (out []int) {
	for pid, parent := range parents() {
		if parent == of {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// descendants are all processes below one, itself left out.
func descendants(of int) (out []int) {
	all := parents()
	for pid := range all {
		// No chain is longer than there are processes, even where one has ended and its id gone on while they were read.
		for p, hops := all[pid], 0; p != 0 && hops <= len(all); p, hops = all[p], hops+1 {
			if p == of {
				out = append(out, pid)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}
