package stack

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// The user ids that Linux distributions give to people; lower ids belong to the system.
const (
	firstPerson = 1000
	lastPerson  = 59999
)

// sharedHost reports whether more than one person seems to use this machine. It counts this user, and the owners of
// folders in /home and of sessions in /run/user.
func sharedHost() bool { return countPeople(os.Getuid(), "/home", "/run/user") > 1 }

func countPeople(self int, homes, sessions string) int {
	people := map[int]bool{}
	add := func(id int) {
		if id >= firstPerson && id <= lastPerson {
			people[id] = true
		}
	}
	add(self)
	folders, _ := os.ReadDir(homes) // a missing folder is no sign of other people
	for _, f := range folders {
		if fi, err := os.Lstat(filepath.Join(homes, f.Name())); err == nil && fi.IsDir() {
			if st, ok := fi.Sys().(*syscall.Stat_t); ok {
				add(int(st.Uid))
			}
		}
	}
	names, _ := os.ReadDir(sessions)
	for _, n := range names {
		if id, err := strconv.Atoi(n.Name()); err == nil {
			add(id)
		}
	}
	return len(people)
}

// openServerNote is shown once per stack on a shared host.
const openServerNote = "note: this machine has other users, and the local Temporal asks no one for a password: any " +
	"of them can see and " +
	"steer your runs at its address; TEMPORAL_ADDRESS selects a server that does"
