package stack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processTable is a snapshot of /proc.
type processTable struct{ children map[int][]int } // parent to children

func readProcesses() processTable {
	t := processTable{children: map[int][]int{}}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return t
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			t.children[parent] = append(t.children[parent], pid)
		}
	}
	return t
}

// parentOf reads the fourth field of /proc/PID/stat. The second field, the name, may contain any character.
func parentOf(pid int) (int, bool) {
	text, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}

func procFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// trees returns the roots and all their descendants, each of them once.
func (t processTable) trees(roots []int) []int {
	seen := map[int]bool{}
	var out []int
	for queue := roots; len(queue) > 0; {
		pid := queue[0]
		queue = append(queue[1:len(queue):len(queue)], t.children[pid]...)
		if !seen[pid] {
			seen[pid] = true
			out = append(out, pid)
		}
	}
	return out
}

// memoryOf returns the memory of the process trees in bytes: proportional set sizes, so that pages that processes share
// (forks of one interpreter) count once.
func memoryOf(roots []int) int64 {
	var sum int64
	for _, pid := range readProcesses().trees(roots) {
		sum += processMemory(pid)
	}
	return sum
}

// processMemory returns the proportional set size, or the resident set size if the kernel does not report the former; 0
// for a process that has ended.
func processMemory(pid int) int64 {
	if text, err := os.ReadFile(procFile(pid, "smaps_rollup")); err == nil {
		for line := range strings.Lines(string(text)) {
			var kb int64
			if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kb); n == 1 {
				return kb << 10
			}
		}
	}
	text, err := os.ReadFile(procFile(pid, "statm"))
	if err != nil {
		return 0
	}
	var size, resident int64
	if n, _ := fmt.Sscan(string(text), &size, &resident); n != 2 {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
