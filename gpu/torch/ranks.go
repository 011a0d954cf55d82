package torch

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// tree holds the processes of an engine: the one that was started, which is torchrun's agent if there are several
// ranks, and the ranks. torchrun puts the ranks into their own sessions, out of reach of the agent's process group.
type tree struct {
	root  int
	ranks []*os.Process // handles, which never refer to a later process with the same id
}

// findRanks records this host's ranks. Under torchrun it does so once all of them have started.
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

// kill ends every process of the tree. There may be none left.
func (t *tree) kill() {
	below := descendants(t.root)
	killGroup(t.root)
	for _, pid := range below {
		killGroup(pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	// Ranks whose agent has died are no longer descendants of this process.
	for _, p := range t.ranks {
		if p.Signal(syscall.Signal(0)) == nil {
			killGroup(p.Pid)
			_ = p.Kill()
		}
	}
}

// killGroup kills the process group that a process leads, if it leads one.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// awaitExit waits until no rank lives. Their devices and memory are then free.
func (t *tree) awaitExit(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		living := parents() // without processes that have ended and were not waited for
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
		// The line is: pid (name) state parent …. A name may hold any character, so the fields begin after the last
		// bracket.
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

// descendants returns all processes below one, without the process itself.
func descendants(of int) (out []int) {
	all := parents()
	for pid := range all {
		// No chain is longer than the number of processes, even if a process ended during the reading and another got
		// its id.
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
