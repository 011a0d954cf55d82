package zygote

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ownerOf extracts the id of the process that created a group from the group's name.
var ownerOf = regexp.MustCompile(`^ropewalk-(?:probe-)?(\d+)(?:-\d+)?$`)

// youngGroup is how old a group must be before a process other than its owner removes it. The owner may run in another
// container, invisible from here, and may be about to use the group.
const youngGroup = time.Minute

// removeLeftGroups removes the empty groups of processes that were killed before they could do so. The kernel refuses
// to remove a group that still holds a process.
func removeLeftGroups() {
	folders, err := ownGroups()
	if err != nil {
		return
	}
	swept := map[string]bool{}
	for _, c := range callBounds() {
		if folder := folders[c.name]; folder != "" && !swept[folder] {
			swept[folder] = true
			removeLeftIn(folder, youngGroup)
		}
	}
}

// removeLeftIn removes the empty groups in a folder whose owners have ended.
func removeLeftIn(folder string, young time.Duration) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		name := ownerOf.FindStringSubmatch(entry.Name())
		if name == nil || !entry.IsDir() {
			continue
		}
		owner, err := strconv.Atoi(name[1])
		if err != nil || unix.Kill(owner, 0) != unix.ESRCH { // alive, or another user's process
			continue
		}
		// Calls that were frozen when their owner was killed have a pending kill signal. It takes effect once they
		// thaw.
		_ = freezer(filepath.Join(folder, entry.Name())).thaw()
		if info, err := entry.Info(); err != nil || time.Since(info.ModTime()) < young {
			continue
		}
		left := filepath.Join(folder, entry.Name())
		removeBelow(left)
		_ = unix.Rmdir(left) // busy: the group still holds a process
	}
}
