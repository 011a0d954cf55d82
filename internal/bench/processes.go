package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
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
func Tree(root int) (u Usage, err error) {
	all, err := readProcesses()
	if err != nil {
		return u, err
	}
	if _, there := all[root]; !there {
		return u, fmt.Errorf("read process %d: %w", root, fs.ErrNotExist)
	}
	seen := map[uint32]bool{all[root].mountNamespace(): true}
	for pid, p := range all {
		if !descends(all, pid, root) {
			continue
		}
		if p.stat.State == "Z" || p.stat.State == "X" {
			u.Zombies++
			continue
		}
		u.Processes++
		descriptors, _ := p.FileDescriptorsLen() // none if it has ended
		mounts, _ := p.MountInfo()
		u.Descriptors += descriptors
		u.Mounts = max(u.Mounts, len(mounts))
		if pid == root {
			u.Root = int64(p.stat.ResidentMemory())
			continue
		}
		shares, _ := p.ProcSMapsRollup() // without figures where it may not be read
		u.Others += cmp.Or(int64(shares.Pss), int64(p.stat.ResidentMemory()))
		if space := p.mountNamespace(); space != 0 && !seen[space] {
			seen[space] = true
			u.Tmpfs += tmpfs(pid, mounts)
		}
	}
	return u, nil
}

// Sample reads what the process and its descendants hold, at once and then once an interval, until ctx ends.
func Sample(ctx context.Context, root int, interval time.Duration, take func(Usage)) error {
	for tick := time.NewTicker(interval); ; {
		u, err := Tree(root)
		if err != nil {
			return err
		}
		take(u)
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-tick.C:
		}
	}
}

// process is a process and its status when all processes were read.
type process struct {
	procfs.Proc
	stat procfs.ProcStat
}

func readProcesses() (map[int]process, error) {
	found, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("read processes: %w", err)
	}
	all := map[int]process{}
	for _, p := range found {
		s, err := p.Stat()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read process %d: %w", p.PID, err)
		}
		all[p.PID] = process{p, s}
	}
	return all, nil
}

func descends(all map[int]process, pid, root int) bool {
	for range len(all) { // the processes were not read at one time: a chain may even be a ring
		if pid == root {
			return true
		}
		p, there := all[pid]
		if !there {
			return false
		}
		pid = p.stat.PPID
	}
	return false
}

// mountNamespace identifies the process's view of mounts; 0 where it may not be read.
func (p process) mountNamespace() uint32 {
	spaces, _ := p.Namespaces()
	return spaces["mnt"].Inode
}

// PeakResident is the most bytes that the process has ever had resident (VmHWM).
func PeakResident(pid int) (int64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	s, err := p.NewStatus()
	if err == nil && s.VmHWM == 0 {
		err = fmt.Errorf("read process %d: its status has no VmHWM", pid)
	}
	return int64(s.VmHWM), err
}

// tmpfs adds up what is in use on the temporary file systems that the process sees.
func tmpfs(pid int, mounts []*procfs.MountInfo) (used int64) {
	for _, m := range mounts {
		var s syscall.Statfs_t
		place := filepath.Join(proc(pid), "root", m.MountPoint)
		if m.FSType == "tmpfs" && syscall.Statfs(place, &s) == nil {
			used += int64(s.Blocks-s.Bfree) * s.Bsize
		}
	}
	return used
}

func proc(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }
