package syscalls

import (
	"golang.org/x/sys/unix"
)

// ForkServerFilter is loaded by fork servers. They create namespaces and mounts, or rulesets, for their sessions, and
// send the sessions' descriptors to the parent. Sessions load their own filter in addition. One of namespaces and
// landlock says what the tier is made of.
func ForkServerFilter(namespaces, landlock bool) string {
	p := basePolicy()
	p.allow(unix.SYS_SECCOMP)
	p.only(unix.SYS_SENDMSG, lacksUrgent(2))
	p.only(unix.SYS_PRLIMIT64, readsLimits()...)
	p.only(unix.SYS_PRCTL, anyOf(0, append([]uint32{unix.PR_SET_PDEATHSIG}, processAttributes...)...)...)
	switch {
	case namespaces:
		p.allow(unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_CLONE)
	case landlock:
		p.allow(unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF)
	}
	return assemble(p)
}

// SessionFilter is loaded by each session's interpreter.
func SessionFilter(namespaces bool) string {
	if namespaces {
		return assemble(basePolicy())
	}
	return CallFilter()
}
