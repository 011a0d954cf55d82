package zygote

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/sandbox/syscalls"
)

// Time in which a call could not run does not count towards its wall limit: time in which one of its processes was
// stopped by something outside (a person, a debugger, a frozen control group), and time in which this process, and
// with it probably the machine, did not run. Stops that the code has asked for count; the filter that reports signals
// tells them apart (sandbox/syscalls).

const (
	// standstill is how late a look must be to show that this process did not run. A busy machine is not that late.
	standstill = time.Second
	// mostStopped is how long something outside may stop a call. After that the call has no verdict.
	mostStopped = 10 * time.Minute
)

// excuse moves the end of the wall limit by the time since the last look if the call could not run.
func (r *running) excuse() {
	now := time.Now()
	gap := now.Sub(r.looked)
	switch {
	case r.cause != causeNone || r.task.paused(): // no limit is running, or resume moves it
	case gap < lookTime && now.Before(r.until):
		return
	case gap > standstill || r.isStopped():
		r.until = r.until.Add(gap)
		if r.stood += gap; r.stood > mostStopped {
			r.kill(causeStopped)
		}
	}
	r.looked = now
}

// isStopped reports whether something outside has stopped a process of the call.
func (r *running) isStopped() bool {
	z := r.zygote
	if group := z.freezer(); group != "" {
		if frozen, err := group.frozen(); err == nil && frozen {
			return true
		}
	}
	if !z.tellsKills() || z.kills.Requested(syscalls.Stopping) {
		return false
	}
	pids, err := childrenOf(z.command.Process.Pid)
	if err != nil {
		return false
	}
	for _, pid := range pids {
		if anyStopped(pid) {
			return true
		}
	}
	return false
}

// anyStopped reports whether a process or one of its descendants is stopped or traced.
func anyStopped(pid int) bool {
	state, _, err := processState(pid)
	if err != nil {
		return false // it has ended
	}
	if state == 'T' || state == 't' {
		return true
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return false
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil && anyStopped(child) {
				return true
			}
		}
	}
	return false
}
