package zygote

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// outOfMemory holds the counts of a control group by which a program that used up its own group's memory can be told
// from a machine that is short of memory. The kernel's OOM killer picks the group's largest process, which may be the
// zygote: a program can cause this with pages that are charged to the group but mapped by no process. So the verdict
// depends on the group and not on which process was killed.
type outOfMemory struct {
	kills uint64 // processes of the group that an OOM killer ended
	limit uint64 // how often the group reached its own limit
}

// since reports whether, after an earlier count, the group ran out of its own memory and lost a process for that.
func (now outOfMemory) since(before outOfMemory) bool {
	return now.kills > before.kills && now.limit > before.limit
}

// countOutOfMemory reads the counts of a memory group. Without a group ("") all counts are 0, so since is never true.
func countOutOfMemory(group string) (outOfMemory, error) {
	if group == "" {
		return outOfMemory{}, nil
	}
	if text, err := os.ReadFile(filepath.Join(group, "memory.events.local")); err == nil { // version 2
		return eventsOf(string(text), "oom_kill", "oom")
	}
	control, err := os.ReadFile(filepath.Join(group, "memory.oom_control"))
	if err != nil {
		return outOfMemory{}, fmt.Errorf("count kills for memory: %w", err)
	}
	failed, err := os.ReadFile(filepath.Join(group, "memory.failcnt"))
	if err != nil {
		return outOfMemory{}, fmt.Errorf("count memory limit: %w", err)
	}
	return eventsOf(string(control)+"failcnt "+string(failed), "oom_kill", "failcnt")
}

// countBefore returns the counts of a memory group so far. If the kernel does not count (version 2 before Linux 5.2,
// version 1 before 4.13), it returns the largest counts, so that no kill is attributed to memory.
func countBefore(group string) outOfMemory {
	n, err := countOutOfMemory(group)
	if err != nil {
		return outOfMemory{kills: math.MaxUint64, limit: math.MaxUint64}
	}
	return n
}

// eventsOf parses lines that consist of a name and a number.
func eventsOf(text, kills, limit string) (n outOfMemory, err error) {
	found := 0
	for line := range strings.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != kills && name != limit {
			continue
		}
		count, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return n, fmt.Errorf("count %s of memory group: %w", name, err)
		}
		found++
		if name == kills {
			n.kills = count
		} else {
			n.limit = count
		}
	}
	if found != 2 {
		return n, fmt.Errorf("count memory group's events: %s and %s are not there: %q", kills, limit, text)
	}
	return n, nil
}
