package zygote

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// killChildren kills the processes that a zygote, which has one thread, has started: the one that runs the call,
// and as init of its namespace those that were left to it. What they have started in turn the zygote itself ends.
// The zygote stands still until its child ends, so it cannot be asked to.
func killChildren(zygote int) error {
	pids, err := childrenOf(zygote)
	if err != nil {
		return err
	}
	var faults []error
	for _, pid := range pids {
		faults = append(faults, killChild(pid, zygote))
	}
	return errors.Join(faults...)
}

// killChild kills a process if it is (still) the zygote's: a process id may have been given to another one.
func killChild(pid, zygote int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill call: open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if parent, err := parentOf(pid); err != nil || parent != zygote {
		return nil // it has ended: a child never changes its parent otherwise
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("kill call: process %d: %w", pid, err)
	}
	return nil
}

// childrenOf lists the processes that a process with one thread has started.
func childrenOf(pid int) ([]int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if errors.Is(err, os.ErrNotExist) {
		return childrenByLook(pid) // the kernel keeps no such list
	}
	if err != nil {
		return nil, fmt.Errorf("list the zygote's processes: %w", err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// childrenByLook asks every process for its parent.
func childrenByLook(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the zygote's processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if parent, err := parentOf(child); err == nil && parent == pid {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// parentOf reads a process's parent from its status line, in which only the name, in parentheses, can hold spaces.
func parentOf(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, fmt.Errorf("read /proc/%d/stat: %q", pid, text)
	}
	return strconv.Atoi(fields[1])
}
