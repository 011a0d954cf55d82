package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Usage is what a process and all that descend from it hold at one time.
type Usage struct {
	Processes int   // the root included, zombies not
	Zombies   int   // ended, but no parent has collected the exit status
	Root      int64 // resident bytes of the root alone
	// Others counts the bytes of the descendants. A page that n processes share counts 1/n where the kernel reports
	// it; otherwise resident bytes are counted.
	Others      int64
	Descriptors int   // open descriptors of all processes
	Mounts      int   // the largest number of mounts that one of the processes sees
	Tmpfs       int64 // bytes in use on temporary file systems of descendants whose mounts are not the root's
}

// Tree reads what the process and its descendants hold from /proc. A process that ends meanwhile is left out.
func Tree(root int) (Usage, error) {
	all, err := readStats()
	if err != nil {
		return Usage{}, err
	}
	if _, there := all[root]; !there {
		return Usage{}, fmt.Errorf("read process %d: %w", root, fs.ErrNotExist)
	}
	var u Usage
	home := mountNamespace(root)
	seen := map[string]bool{home: true}
	for pid, s := range all {
		if !descends(all, pid, root) {
			continue
		}
		if s.state == 'Z' || s.state == 'X' {
			u.Zombies++
			continue
		}
		u.Processes++
		u.Descriptors += entries(filepath.Join(proc(pid), "fd"))
		u.Mounts = max(u.Mounts, countLines(filepath.Join(proc(pid), "mounts")))
		if pid == root {
			u.Root = s.resident
			continue
		}
		u.Others += proportional(pid, s.resident)
		if space := mountNamespace(pid); space != "" && !seen[space] {
			seen[space] = true
			u.Tmpfs += tmpfs(pid)
		}
	}
	return u, nil
}

// stat is what /proc/PID/stat says.
type stat struct {
	state    byte
	parent   int
	resident int64 // bytes
	ticks    int64 // processor time of the process and of the children that it has collected
}

func proc(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }

func readStats() (map[int]stat, error) {
	folders, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("read processes: %w", err)
	}
	all := map[int]stat{}
	for _, f := range folders {
		pid, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[pid] = s
	}
	return all, nil
}

func readStat(pid int) (stat, error) {
	line, err := os.ReadFile(filepath.Join(proc(pid), "stat"))
	if err != nil {
		return stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	s, err := parseStat(line)
	if err != nil {
		return s, fmt.Errorf("read process %d: %w", pid, err)
	}
	return s, nil
}

// parseStat reads a line as proc_pid_stat(5) gives it. The name, in parentheses, may hold anything.
func parseStat(line []byte) (stat, error) {
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	const state, parent, resident = 0, 1, 21 // fields 3, 4 and 24 of the man page
	if len(fields) <= resident {
		return stat{}, fmt.Errorf("stat has %d fields after the name", len(fields))
	}
	above, err := strconv.Atoi(string(fields[parent]))
	if err != nil {
		return stat{}, fmt.Errorf("stat: parent: %w", err)
	}
	pages, err := strconv.ParseInt(string(fields[resident]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("stat: resident pages: %w", err)
	}
	return stat{state: fields[state][0], parent: above, resident: pages * int64(os.Getpagesize()),
		ticks: ticksOf(fields)}, nil
}

func descends(all map[int]stat, pid, root int) bool {
	for range len(all) { // the processes were not read at one time: a chain may even be a ring
		if pid == root {
			return true
		}
		s, there := all[pid]
		if !there {
			return false
		}
		pid = s.parent
	}
	return false
}

// proportional is the process's share of the pages it maps (PSS), or what is resident where that may not be read.
func proportional(pid int, resident int64) int64 {
	text, err := os.ReadFile(filepath.Join(proc(pid), "smaps_rollup"))
	if err != nil {
		return resident
	}
	for line := range bytes.Lines(text) {
		var kilobytes int64
		if _, err := fmt.Sscanf(string(line), "Pss: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	return resident
}

// PeakResident is the most bytes that the process has ever had resident (VmHWM).
func PeakResident(pid int) (int64, error) {
	text, err := os.ReadFile(filepath.Join(proc(pid), "status"))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		var kilobytes int64
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &kilobytes); err == nil {
			return kilobytes << 10, nil
		}
	}
	return 0, fmt.Errorf("read process %d: its status has no VmHWM", pid)
}

func entries(folder string) int {
	names, err := os.ReadDir(folder)
	if err != nil {
		return 0 // it has ended
	}
	return len(names)
}

func countLines(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0 // it has ended
	}
	return bytes.Count(text, []byte("\n"))
}

// mountNamespace names the process's view of mounts, or is empty where it may not be read.
func mountNamespace(pid int) string {
	name, err := os.Readlink(filepath.Join(proc(pid), "ns", "mnt"))
	if err != nil {
		return ""
	}
	return name
}

// tmpfs adds up what is in use on the temporary file systems that the process sees.
func tmpfs(pid int) int64 {
	text, err := os.ReadFile(filepath.Join(proc(pid), "mounts"))
	if err != nil {
		return 0 // it has ended
	}
	var used int64
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line) // device, place, type, …
		if len(fields) < 3 || string(fields[2]) != "tmpfs" {
			continue
		}
		var s syscall.Statfs_t
		if syscall.Statfs(filepath.Join(proc(pid), "root", string(fields[1])), &s) == nil {
			used += int64(s.Blocks-s.Bfree) * s.Bsize
		}
	}
	return used
}
