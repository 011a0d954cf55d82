package zygote

import (
	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

// motherFilter is loaded by the zygote that makes sessions: it makes namespaces and mounts for them, or
// rule sets, and sends their descriptors to the parent. Sessions load their own on top.
func motherFilter(tier sandbox.Tier) string {
	p := everywhere()
	p.allow(unix.SYS_SECCOMP, unix.SYS_SENDMSG)
	p.only(unix.SYS_PRCTL, anyOf(0, append([]uint32{unix.PR_SET_PDEATHSIG}, processAttributes...)...)...)
	switch tier {
	case sandbox.TierFull:
		p.allow(unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_CLONE)
	case sandbox.TierLandlock:
		p.allow(unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF)
	}
	return assemble(p)
}

// sessionFilter is loaded by each session's interpreter.
func sessionFilter(tier sandbox.Tier) string {
	if tier == sandbox.TierFull {
		return assemble(everywhere())
	}
	return callFilter()
}
