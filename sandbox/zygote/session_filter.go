package zygote

import (
	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

// refusedToSessions comes on top in a process namespace of the session's own. Without capabilities these
// calls fail anyway, save making a user namespace, which the parent's /proc/sys may have forbidden to forbid.
var refusedToSessions = []uint32{
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

const anyNamespace = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// sessionFilter is loaded by each session's interpreter.
func sessionFilter(tier sandbox.Tier) string {
	if tier != sandbox.TierFull {
		return callFilter()
	}
	rules := append(refuse(refusedToSessions),
		rule{number: unix.SYS_CLONE3, errno: unix.ENOSYS}, // its flags cannot be seen; the C library falls back to clone
		rule{number: unix.SYS_CLONE, pass: condition{code: ifAnySet, value: anyNamespace, negated: true}, errno: unix.EPERM},
		rule{number: unix.SYS_PRLIMIT64, pass: condition{code: ifEqual, value: 0}, errno: unix.EPERM}, // 0: oneself
	)
	return assemble(rules)
}
