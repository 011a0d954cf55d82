package zygote

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ownerOf reads the number of the process that made a group out of the group's name.
var ownerOf = regexp.MustCompile(`^ropewalk-(?:probe-)?(\d+)(?:-\d+)?$`)

// youngGroup is how old a group is before anyone but its owner removes it: its owner, if it is in another
// container and so not to be seen here, may be about to fill it.
const youngGroup = time.Minute

// removeLeftGroups removes the empty groups of processes that ended without doing so (SIGKILL). The kernel keeps one that
// holds a process, whatever is asked of it here.
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
		if err != nil || unix.Kill(owner, 0) != unix.ESRCH { // alive, or somebody else's
			continue
		}
		if info, err := entry.Info(); err != nil || time.Since(info.ModTime()) < young {
			continue
		}
		_ = unix.Rmdir(filepath.Join(folder, entry.Name())) // busy: it holds a process yet
	}
}
