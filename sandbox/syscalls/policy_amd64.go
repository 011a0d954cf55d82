package syscalls

import (
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_X86_64

// forks are the system calls, other than clone and clone3, that create a process.
var forks = []uint32{unix.SYS_FORK, unix.SYS_VFORK}

// olderAllowed are older forms of allowed calls, which later architectures do not have.
var olderAllowed = []uint32{
	unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_ACCESS,
	unix.SYS_GETDENTS, unix.SYS_READLINK, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_MKNOD, unix.SYS_UNLINK,
	unix.SYS_SYMLINK, unix.SYS_LINK, unix.SYS_RENAME, unix.SYS_DUP2, unix.SYS_PIPE, unix.SYS_POLL, unix.SYS_SELECT,
	unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT, unix.SYS_EVENTFD, unix.SYS_SIGNALFD, unix.SYS_PAUSE, unix.SYS_ALARM,
	unix.SYS_TIME, unix.SYS_GETPGRP, unix.SYS_ARCH_PRCTL,
}

// olderMetadataCalls are older forms of the calls in metadataCalls.
var olderMetadataCalls = []uint32{
	unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
}
