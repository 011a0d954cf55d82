package zygote

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// forks are the calls besides clone and clone3 that make a process.
var forks = []uint32{unix.SYS_FORK, unix.SYS_VFORK}
