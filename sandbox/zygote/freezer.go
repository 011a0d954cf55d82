package zygote

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// freezer is the folder of a zygote's control group that can be frozen; "" if there is none. Freezing pauses the zygote
// and all processes of its call at once, whatever process groups and sessions they have created. In version 2 every
// group can be frozen; version 1 has a controller for it.
type freezer string

func (f freezer) freeze() error { return f.set("1", "FROZEN") }

// thaw lets the group's processes run again. In version 1 a SIGKILL takes effect only then.
func (f freezer) thaw() error { return f.set("0", "THAWED") }

func (f freezer) set(second, first string) error {
	file, text := filepath.Join(string(f), "cgroup.freeze"), second
	if _, err := os.Stat(file); err != nil {
		file, text = filepath.Join(string(f), "freezer.state"), first
	}
	return write(file, text)
}

// frozen reports whether every process of the group is paused. After freeze, this takes a moment.
func (f freezer) frozen() (bool, error) {
	events, err := os.ReadFile(filepath.Join(string(f), "cgroup.events"))
	if err == nil {
		return slices.Contains(strings.Split(string(events), "\n"), "frozen 1"), nil
	}
	state, err := os.ReadFile(filepath.Join(string(f), "freezer.state"))
	if err != nil {
		return false, fmt.Errorf("ask whether control group is frozen: %w", err)
	}
	return strings.TrimSpace(string(state)) == "FROZEN", nil
}

// holdsKilled reports whether a SIGKILL has no effect while the group is frozen, as in version 1. Such a group must not
// stay frozen: if this process were killed, the call would remain forever.
func (f freezer) holdsKilled() bool {
	_, err := os.Stat(filepath.Join(string(f), "cgroup.freeze"))
	return err != nil
}

// signal sends a signal to all processes of the group except one. The processes are frozen, so none can be missed, and
// no process id can have been reused.
func (f freezer) signal(number unix.Signal, but int) error {
	text, err := os.ReadFile(filepath.Join(string(f), "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("list control group: %w", err)
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid <= 0 {
			return fmt.Errorf("list control group: %q", field)
		}
		if pid == but {
			continue
		}
		if err := unix.Kill(pid, number); err != nil && err != unix.ESRCH {
			return fmt.Errorf("signal process %d of control group: %w", pid, err)
		}
	}
	return nil
}

// alone reports whether a call is one process that leads its group. If that process is paused, the whole call is.
func (r *running) alone() bool {
	pids, err := childrenOf(r.zygote.command.Process.Pid)
	if err != nil || len(pids) != 1 || len(r.leaders()) != 1 {
		return false
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[0]))
	if err != nil || len(threads) == 0 {
		return false // this kernel has no such list
	}
	for _, file := range threads {
		if text, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(text)) != "" {
			return false
		}
	}
	return true
}
