package zygote

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// killChildren kills the processes that a zygote has started: the one that runs the call, and, where the zygote is init
// of its namespace, the orphans. The zygote itself ends the descendants of these. The zygote has one thread and is
// blocked until its child ends, so it cannot be asked to kill the child. killChildren returns how many processes it
// found that had not ended by themselves.
func killChildren(zygote int) (met int, err error) {
	pids, err := childrenOf(zygote)
	if err != nil {
		return 0, err
	}
	var faults []error
	for _, pid := range pids {
		if state, _, err := processState(pid); err == nil && state != 'Z' {
			met++
		}
		faults = append(faults, killChild(pid, zygote))
	}
	return met, errors.Join(faults...)
}

// killChild kills a process if it is still a child of the zygote; the process id may belong to another process by now.
func killChild(pid, zygote int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill call: open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if _, parent, err := processState(pid); err != nil || parent != zygote {
		return nil // it has ended: nothing else changes a child's parent
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
		return childrenByScan(pid) // this kernel has no such list
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

// childrenByScan reads the parent of every process.
func childrenByScan(pid int) ([]int, error) {
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
		if _, parent, err := processState(child); err == nil && parent == pid {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// processState reads the letter of a process's state, and its parent, from its stat file. Only the name, which is in
// parentheses, can contain spaces.
func processState(pid int) (state byte, parent int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("read /proc/%d/stat: %q", pid, text)
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0][0], parent, err
}
