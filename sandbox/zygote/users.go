package zygote

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// The kernel counts some resources by user, for the whole machine: pages of pipes, signals that wait, processes,
// watches. Calls of one user could use these up for each other. So if this process is root, each zygote and each
// session of the tier "full" runs as a user of its own. The numbers are in a range that systemd's list of user ids
// calls unused; calls and sessions see the same number everywhere.
const (
	firstUser = 2_000_000_000
	perParent = 1 << 10 // users of one parent process; more zygotes or sessions share them
	parents   = 1 << 14 // parents whose users differ
	// insideSessions is the first user of the sessions in the user namespace of a fork server.
	insideSessions = 10_000
)

var usersGiven, sessionUsersGiven atomic.Int64

// rangeOfUsers returns the first of the host's users for the zygotes of this process. Those for sessions follow. It
// returns 0 if this process is not root or if its user namespace does not have the range.
var rangeOfUsers = sync.OnceValue(func() int {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || os.Geteuid() != 0 || !hasUsers(string(text), firstUser, 2*perParent*parents) {
		return 0
	}
	return firstUser + os.Getpid()%parents*2*perParent
})

// ownUser returns the host's user for the next zygote.
func ownUser() int {
	if first := rangeOfUsers(); first != 0 {
		return first + int(usersGiven.Add(1)%perParent)
	}
	return unprivileged
}

// sessionUser returns the user of the next session in its fork server's namespace; 0 means that of the fork server.
func sessionUser() int64 {
	if rangeOfUsers() == 0 {
		return 0
	}
	return insideSessions + sessionUsersGiven.Add(1)%perParent
}

// hasUsers parses uid_map of user_namespaces(7): lines with the first id inside, the first id outside, and a length.
func hasUsers(text string, first, length int) bool {
	for line := range strings.Lines(text) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err == nil && inside <= first && first+length <= inside+n {
			return true
		}
	}
	return false
}
