package zygote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A control group bounds a zygote, or a mother with her sessions, with everything that it forks, as limits of a process cannot: a call
// that forks then has one bound on processes and memory. Groups are made where this process may make
// them: in a delegated part of version 2, or as root in version 1. CPU time has none: measured beside
// other work, a group of its own took half of the zygote's pace, since it has one share against all others'.

// groupMemory bounds a zygote and one call with all its processes, in bytes. The kernel ends the largest
// process of a group that would need more.
const groupMemory = 4 << 30

// controller is one resource and the files that bound it; version 2 and version 1 name them differently.
type controller struct {
	name   string
	limits map[string]string // file in the group → value; a file that is not there is passed over
}

// callBounds are those of a zygote that runs calls, one at a time.
func callBounds() []controller {
	return bounds(mostProcesses+8, groupMemory) // the interpreter's start needs some processes
}

// sessionProcesses bounds a mother and all her sessions: each has its own, lower bound on processes, and all
// together must leave the machine room for others.
const sessionProcesses = 8192

// sessionBounds are those of a mother with all her sessions: three quarters of the machine's memory, but no less than a call
// may have. A session alone is bounded by the limits of its processes.
func sessionBounds() []controller {
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		return bounds(sessionProcesses, groupMemory)
	}
	memory := uint64(machine.Totalram) * uint64(machine.Unit)
	return bounds(sessionProcesses, max(groupMemory, int64(memory/4*3)))
}

func bounds(processes int, memory int64) []controller {
	bytes := strconv.FormatInt(memory, 10)
	return []controller{
		{"pids", map[string]string{"pids.max": strconv.Itoa(processes)}},
		{"memory", map[string]string{"memory.max": bytes, "memory.swap.max": "0", "memory.limit_in_bytes": bytes}},
	}
}

// GroupPlace is where groups of a controller can be made.
type GroupPlace struct {
	Controller string
	Folder     string // "" if none can
	Reason     string // why not
}

// GroupPlaces says for each controller whether and where this process can make groups.
func GroupPlaces() []GroupPlace {
	folders, err := ownGroups()
	out := make([]GroupPlace, len(callBounds()))
	for i, c := range callBounds() {
		out[i] = GroupPlace{Controller: c.name}
		folder := folders[c.name]
		switch {
		case err != nil:
			out[i].Reason = err.Error()
		case folder == "":
			out[i].Reason = "no hierarchy offers the controller " + c.name
		default:
			probe, err := makeGroup(folder, c, fmt.Sprintf("ropewalk-probe-%d", os.Getpid()))
			if err != nil {
				out[i].Reason = err.Error()
				continue
			}
			out[i].Folder = folder
			_ = os.Remove(probe) // an empty group; another probe would use it again
		}
	}
	return out
}

// ownGroups maps controllers to this process's own groups, as folders.
func ownGroups() (map[string]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	memberships, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("find own control groups: %w", err)
	}
	return groupFolders(string(mounts), string(memberships), func(file string) string {
		text, _ := os.ReadFile(file) // a group without the file has no controllers to give
		return string(text)
	}), nil
}

// groupFolders reads mountinfo(5) and cgroups(7). Version 2 offers a group's controllers to groups below it
// only where cgroup.subtree_control lists them.
func groupFolders(mounts, memberships string, read func(file string) string) map[string]string {
	paths := map[string]string{} // of the own group; by controller, "" is version 2
	for line := range strings.Lines(memberships) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for _, name := range strings.Split(fields[1], ",") {
			paths[name] = fields[2]
		}
	}
	out := map[string]string{}
	for line := range strings.Lines(mounts) {
		place, kind, found := strings.Cut(strings.TrimSpace(line), " - ")
		fields, kinds := strings.Fields(place), strings.Fields(kind)
		if !found || len(fields) < 5 || len(kinds) < 3 {
			continue
		}
		offered, path := strings.Split(kinds[2], ","), ""
		if kinds[0] == "cgroup2" {
			path = below(fields[4], fields[3], paths[""])
			offered = strings.Fields(read(filepath.Join(path, "cgroup.subtree_control")))
		} else if kinds[0] != "cgroup" {
			continue
		}
		for _, name := range offered {
			if kinds[0] == "cgroup" {
				path = below(fields[4], fields[3], paths[name])
			}
			if out[name] == "" {
				out[name] = path
			}
		}
	}
	return out
}

// below is a group's folder under a mount that shows the hierarchy from root on.
func below(mount, root, group string) string {
	return filepath.Join(mount, strings.TrimPrefix(group, strings.TrimSuffix(root, "/")))
}

// makeGroup makes a group with the controller's limits.
func makeGroup(parent string, c controller, name string) (string, error) {
	group := filepath.Join(parent, name)
	if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make control group: %w", err)
	}
	for file, value := range c.limits {
		err := os.WriteFile(filepath.Join(group, file), []byte(value), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			_ = os.Remove(group)
			return "", fmt.Errorf("bound control group: %w", err)
		}
	}
	return group, nil
}

// groups are those of one zygote.
type groups []string

// join puts a process that has no children yet into groups of its own, where that can be had: a tier
// does not depend on it, so what cannot be had is told by GroupPlaces alone.
func join(pid int, controllers []controller) (joined groups) {
	folders, err := ownGroups()
	if err != nil {
		return nil
	}
	name := fmt.Sprintf("ropewalk-%d-%d", os.Getpid(), pid)
	for _, c := range controllers {
		if folders[c.name] == "" {
			continue
		}
		group, err := makeGroup(folders[c.name], c, name)
		if err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			_ = os.Remove(group)
			continue
		}
		joined = append(joined, group)
	}
	return joined
}

// remove removes the groups once their processes are gone: those of sessions in the weaker tiers outlive their mother
// by a moment.
func (g groups) remove() {
	const tries, wait = 50, 20 * time.Millisecond
	for _, group := range g {
		for range tries {
			if err := os.Remove(group); !errors.Is(err, unix.EBUSY) { // where one group holds several controllers, it is gone already
				break
			}
			time.Sleep(wait)
		}
	}
}
