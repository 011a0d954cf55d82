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

	"github.com/ropewalk/ropewalk/sandbox"
)

// A control group bounds a zygote (or a fork server with its sessions) together with everything that it forks. Limits
// of a single process cannot do that: with a group, a call that forks has one bound on processes and on memory. Groups
// are created wherever this process may create them: in a delegated part of version 2, or as root in version 1. There
// is no bound on CPU time: measured next to other work, a group of its own halved the zygote's speed, since the group's
// one share competes with the shares of all other groups.

// groupMemory bounds a zygote and one call with all its processes, in bytes. If a group needs more, the kernel kills
// the group's largest process.
const groupMemory = 4 << 30

// controller is one resource and the files that bound it. Version 2 and version 1 use different file names.
type controller struct {
	name   string
	limits map[string]string // file in the group → value; files that do not exist are skipped
}

// callBounds returns the bounds of a zygote that runs calls, one at a time.
func callBounds() []controller {
	freezer := controller{name: "freezer"}                       // bounds nothing; it pauses calls that are set aside
	return append(bounds(mostProcesses+8, groupMemory), freezer) // the interpreter's start needs some processes
}

// sessionProcesses bounds a fork server and all its sessions. Each session has its own, lower bound on processes; all
// of them together must leave processes for the rest of the machine.
const sessionProcesses = 8192

// sessionBounds returns the bounds of a fork server with all its sessions: three quarters of the machine's memory, but
// at least as much as one call may use. Each session is also bounded by the limits of its own processes.
func sessionBounds() []controller {
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		return bounds(sessionProcesses, groupMemory)
	}
	memory := uint64(machine.Totalram) * uint64(machine.Unit)
	return bounds(sessionProcesses, max(groupMemory, int64(memory/4*3)))
}

func bounds(processes int, memory int64) []controller {
	return []controller{{"pids", map[string]string{"pids.max": strconv.Itoa(processes)}}, memoryBound(memory)}
}

func memoryBound(memory int64) controller {
	bytes := strconv.FormatInt(memory, 10)
	return controller{"memory", map[string]string{"memory.max": bytes, "memory.swap.max": "0",
		"memory.limit_in_bytes": bytes}}
}

// sessionMemory bounds one session with all its processes. The bound is that of a call, but at most half of what all
// sessions may use together (unless the session's own limit is higher), so that one session runs out of its own memory
// before it exhausts the shared memory.
func sessionMemory(limits sandbox.Limits) int64 {
	all, err := strconv.ParseInt(sessionBounds()[1].limits["memory.max"], 10, 64)
	if err != nil {
		return groupMemory
	}
	const own = 512 << 20 // for the interpreter and the work folder, on top of the call's limit
	return min(groupMemory, max(all/2, limits.MemoryBytes+own))
}

// GroupPlace says where groups of a controller can be created.
type GroupPlace struct {
	Controller string
	Folder     string // "" if groups cannot be created
	Reason     string // why groups cannot be created
}

// GroupPlaces reports for each controller whether and where this process can create groups.
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
			_ = os.Remove(probe) // an empty group; another probe would reuse it
		}
	}
	return out
}

// ownGroups maps controllers to the folders of this process's own groups.
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
		text, _ := os.ReadFile(file) // a group without this file has no controllers to offer
		return string(text)
	}), nil
}

// groupFolders parses mountinfo(5) and cgroups(7). In version 2 a group offers its controllers to the groups below it
// only if cgroup.subtree_control lists them.
func groupFolders(mounts, memberships string, read func(file string) string) map[string]string {
	paths := map[string]string{} // of this process's group, by controller; "" is version 2
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
			offered = append(strings.Fields(read(filepath.Join(path, "cgroup.subtree_control"))), "freezer")
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

// below returns a group's folder under a mount that shows the hierarchy below root.
func below(mount, root, group string) string {
	return filepath.Join(mount, strings.TrimPrefix(group, strings.TrimSuffix(root, "/")))
}

// makeGroup creates a group with the controller's limits.
func makeGroup(parent string, c controller, name string) (string, error) {
	group := filepath.Join(parent, name)
	if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make control group: %w", err)
	}
	for file, value := range c.limits {
		err := write(filepath.Join(group, file), value)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			_ = os.Remove(group)
			return "", fmt.Errorf("bound control group: %w", err)
		}
	}
	return group, nil
}

// group is one control group.
type group struct{ controller, folder string }

// groups are the control groups of one zygote, one fork server or one session.
type groups []group

// of returns the folder of a controller's group; "" if there is none.
func (g groups) of(controller string) string {
	for _, one := range g {
		if one.controller == controller {
			return one.folder
		}
	}
	return ""
}

// join moves a process that has no children yet into groups of its own, as far as groups can be created. No tier
// depends on groups, so join ignores failures; GroupPlaces reports them.
//
// shared says that the process is a fork server, whose sessions have groups below the fork server's group.
func join(pid int, controllers []controller, shared bool) (joined groups) {
	folders, err := ownGroups()
	if err != nil {
		return nil
	}
	name := fmt.Sprintf("ropewalk-%d-%d", os.Getpid(), pid)
	for _, c := range controllers {
		if folders[c.name] == "" {
			continue
		}
		folder, err := makeGroup(folders[c.name], c, name)
		if err != nil {
			continue
		}
		if err := enter(folder, pid, shared && c.name == "memory"); err != nil {
			_ = os.Remove(folder)
			continue
		}
		joined = append(joined, group{c.name, folder})
	}
	return joined
}

// inner is the name of the group that holds the fork server, below the shared group of version 2. In version 2 a group
// either holds processes or has groups with limits of their own below it.
const inner = "server"

// enter moves a process into a group. In version 2 it uses a group below, if sessions need groups of their own there.
func enter(folder string, pid int, shared bool) error {
	if _, err := os.Stat(filepath.Join(folder, "cgroup.subtree_control")); err == nil && shared {
		below := filepath.Join(folder, inner)
		if err := os.Mkdir(below, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make control group: %w", err)
		}
		if err := write(filepath.Join(below, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			_ = os.Remove(below)
			return err
		}
		return write(filepath.Join(folder, "cgroup.subtree_control"), "+memory")
	}
	return write(filepath.Join(folder, "cgroup.procs"), strconv.Itoa(pid))
}

// write writes to an existing file of a control group.
func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		return fmt.Errorf("set control group: %w", err)
	}
	return nil
}

// joinBelow moves the processes of a session into a memory group of their own below the fork server's group, so that a
// session that uses more than its share runs out of memory alone. It returns "" if the group cannot be created.
func (g groups) joinBelow(name string, memory int64, pids ...int) string {
	parent := g.of("memory")
	if parent == "" {
		return ""
	}
	folder, err := makeGroup(parent, memoryBound(memory), name)
	if err != nil {
		return ""
	}
	for _, pid := range pids {
		if err := write(filepath.Join(folder, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			_ = os.Remove(folder) // fails if a process was moved already; the fork server's bound holds in any case
			return ""
		}
	}
	return folder
}

// remove removes the groups once their processes have ended. In the weaker tiers a session's processes can outlive
// their fork server by a moment.
func (g groups) remove() {
	const tries, wait = 50, 20 * time.Millisecond
	for _, one := range g {
		removeBelow(one.folder)
		for range tries {
			// Where one group holds several controllers, it may be gone already.
			if err := os.Remove(one.folder); !errors.Is(err, unix.EBUSY) {
				break
			}
			time.Sleep(wait)
		}
	}
}

// removeBelow removes the groups below a folder. Each of them is empty once its processes have ended.
func removeBelow(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() {
			_ = unix.Rmdir(filepath.Join(folder, entry.Name())) // busy: the owner of its processes removes it
		}
	}
}
