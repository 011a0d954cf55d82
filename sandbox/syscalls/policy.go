package syscalls

import (
	"maps"

	"golang.org/x/sys/unix"
)

// allowed are the system calls of ordinary programs: files, memory, time, threads, their own processes, pipes. Each
// architecture adds its older forms (filter_GOARCH.go). A call that is neither in this list nor below fails with
// ENOSYS. Among these are asynchronous I/O (its contexts are counted for the whole machine), inotify (counted for the
// user), POSIX timers (they can send any signal without a system call: kills.go; programs fall back to other timers),
// files in memory and spliced pages (memory that no process limit counts), memory policy, keys and modules, the mount
// calls from fsopen on, Landlock, and new namespaces.
var allowed = []uint32{
	// files
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_LSEEK, unix.SYS_CLOSE,
	unix.SYS_CLOSE_RANGE, unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_FACCESSAT,
	unix.SYS_FACCESSAT2, unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_READLINKAT,
	unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_UNLINKAT, unix.SYS_SYMLINKAT,
	unix.SYS_LINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_TRUNCATE, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE,
	unix.SYS_READAHEAD, unix.SYS_UMASK,
	unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_SENDFILE, unix.SYS_COPY_FILE_RANGE, unix.SYS_GETXATTR,
	unix.SYS_LGETXATTR, unix.SYS_FGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR,
	// waiting
	unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT,
	unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME,
	unix.SYS_TIMERFD_GETTIME, unix.SYS_SIGNALFD4, unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV, unix.SYS_SCHED_YIELD,
	unix.SYS_RESTART_SYSCALL,
	// time
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY,
	unix.SYS_TIMES, unix.SYS_GETITIMER, unix.SYS_SETITIMER,
	// memory
	unix.SYS_BRK, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE,
	unix.SYS_PKEY_ALLOC, unix.SYS_PKEY_FREE, unix.SYS_PKEY_MPROTECT,
	// processes and threads
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_WAIT4, unix.SYS_WAITID,
	unix.SYS_PIDFD_OPEN, unix.SYS_SET_TID_ADDRESS, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_GETRUSAGE,
	unix.SYS_GETRLIMIT, unix.SYS_SETRLIMIT, unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETPGID,
	unix.SYS_SETPGID, unix.SYS_GETSID, unix.SYS_SETSID, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_GETATTR,
	unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_GET_PRIORITY_MAX,
	unix.SYS_SCHED_GET_PRIORITY_MIN, unix.SYS_SCHED_RR_GET_INTERVAL, unix.SYS_GETPRIORITY, unix.SYS_IOPRIO_GET,
	// signals
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPENDING,
	unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_SIGALTSTACK,
	// ids: reading them, and changes that fail anyway without capabilities
	unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRESUID, unix.SYS_GETRESGID,
	unix.SYS_GETGROUPS, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID,
	unix.SYS_SETRESGID, unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_SETGROUPS, unix.SYS_CAPGET, unix.SYS_CAPSET,
	unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETCPU, unix.SYS_GETRANDOM,
	// connected socket pairs; descriptors in flight are counted for the user, so they cannot be sent
	unix.SYS_SHUTDOWN, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT,
}

// refused are calls that reach the network, other processes or state that outlives a call, and parts of the kernel that
// model-written code does not need. They fail with EPERM.
var refused = []uint32{
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN,
	unix.SYS_MQ_UNLINK, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
	unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_SYSLOG, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE,
	unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT,
	unix.SYS_QUOTACTL, unix.SYS_VHANGUP, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX,
	unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_SECCOMP, unix.SYS_SYNC,
	unix.SYS_SYNCFS, unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MLOCKALL,
}

// pretended are calls that flush files. They would reach the machine's disks, through the host's files too. No file of
// a call outlives the call, so a flush has no effect that the call could see.
var pretended = []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_MSYNC}

// signals reach other processes. Inside a process namespace these are only the call's own.
var signals = []uint32{
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_RT_SIGQUEUEINFO,
	unix.SYS_RT_TGSIGQUEUEINFO,
}

// metadataCalls change a file's metadata. Landlock does not check them, so without a mount namespace they could change
// every file of the user.
var metadataCalls = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
	unix.SYS_FREMOVEXATTR,
}

// Values that x/sys/unix does not define, from linux/prctl.h, linux/ioprio.h and sys/socket.h.
const (
	prSetVMA      = 0x53564d41
	ioprioProcess = 1
	socketKind    = 0xf // SOCK_* without its flags
	namespaces    = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP
	askPersonality = 0xffffffff
	fioClex        = 0x5451
	fioNClex       = 0x5450
	fioNBio        = 0x5421
	adviseDontNeed = 4
)

// deviceRequests are the ioctl operations that calls may use: asking whether a descriptor is a terminal, its size, how
// much can be read from it, and what fcntl does too. All others fail as they do for a descriptor that does not have
// them. Among these are those that set flags and owners of inodes, which may be the host's.
var deviceRequests = []uint32{unix.TCGETS, unix.TCGETS2, unix.TIOCGWINSZ, unix.TIOCGPGRP, unix.TIOCINQ, unix.TIOCOUTQ,
	fioClex, fioNClex, fioNBio}

// descriptorRequests are the fcntl operations that calls may use. Not among them are those that give a descriptor an
// owner, who receives its signals and can be any process; leases, notifications and locks of open files, which hold up
// others who use the file; hints that stay with the inode; and larger pipes, whose pages are counted for the user.
var descriptorRequests = []uint32{unix.F_DUPFD, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_GETLK,
	unix.F_GETOWN, unix.F_GETSIG, unix.F_GETOWN_EX, unix.F_OFD_GETLK, unix.F_GETLEASE, unix.F_DUPFD_QUERY,
	unix.F_CREATED_QUERY, unix.F_DUPFD_CLOEXEC, unix.F_GETPIPE_SZ, unix.F_GET_SEALS, unix.F_GET_RW_HINT}

// processAttributes are the prctl operations that calls may use: names of threads and memory, core dump settings.
var processAttributes = []uint32{
	unix.PR_SET_NAME, unix.PR_GET_NAME, prSetVMA, unix.PR_GET_PDEATHSIG, unix.PR_GET_DUMPABLE, unix.PR_SET_DUMPABLE,
	unix.PR_CAPBSET_READ, unix.PR_GET_SECUREBITS, unix.PR_GET_TIMERSLACK, unix.PR_GET_NO_NEW_PRIVS,
	unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_SECCOMP, unix.PR_SET_CHILD_SUBREAPER, unix.PR_GET_CHILD_SUBREAPER,
	unix.PR_GET_THP_DISABLE, unix.PR_SET_THP_DISABLE, unix.PR_CAP_AMBIENT,
}

// basePolicy holds in every tier, for zygotes and calls alike.
func basePolicy() policy {
	p := policy{}
	p.allow(allowed...)
	p.allow(olderAllowed...)
	p.allow(forks...)
	p.allow(signals...)
	p.allow(metadataCalls...)
	p.allow(olderMetadataCalls...)
	p.refuse(unix.EPERM, refused...)
	p.refuse(unix.EPERM, unix.SYS_FLOCK) // the lock is the file's, which may be the host's
	for _, n := range pretended {
		p[n] = action{errno: unix.EPERM, pretended: always}
	}
	// The C library falls back from clone3, whose flags a filter cannot read, to clone.
	p.refuse(unix.ENOSYS, unix.SYS_CLONE3)
	// Another exit signal of a child would reach its parent without a system call (kills.go).
	p.only(unix.SYS_CLONE, []condition{{mask: namespaces}, {mask: unix.CSIGNAL}},
		[]condition{{mask: namespaces}, {mask: unix.CSIGNAL, value: uint32(unix.SIGCHLD)}})
	// Datagrams could be sent to any socket with a known name; a connected pair of streams has only one peer.
	p.only(unix.SYS_SOCKETPAIR, []condition{equals(0, unix.AF_UNIX),
		{argument: 1, mask: socketKind, value: unix.SOCK_STREAM}})
	// Out-of-band bytes on socket pairs have caused kernel bugs, and no program here needs them.
	p.only(unix.SYS_SENDTO, lacksUrgent(3))
	p.only(unix.SYS_RECVFROM, lacksUrgent(3))
	p.only(unix.SYS_RECVMSG, lacksUrgent(2))
	// Programs of the kernel's packet filter can be attached to any socket, including one of a pair.
	p.only(unix.SYS_SETSOCKOPT, isNone(2, unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF, unix.SO_ATTACH_REUSEPORT_CBPF,
		unix.SO_ATTACH_REUSEPORT_EBPF))
	// A process may change only its own limits, priority and affinity (0), not those of the zygote or of other calls.
	for _, n := range []uint32{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER,
		unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR} {
		p.only(n, []condition{equals(0, 0)})
	}
	p.only(unix.SYS_SETPRIORITY, []condition{equals(0, unix.PRIO_PROCESS), equals(1, 0)})
	p.only(unix.SYS_IOPRIO_SET, []condition{equals(0, ioprioProcess), equals(1, 0)})
	// A program with one process, such as one with a database in a file, does not notice that its locks are not taken.
	p[unix.SYS_FCNTL] = action{errno: unix.EPERM, alternatives: anyOf(1, descriptorRequests...),
		pretended: anyOf(1, unix.F_SETLK, unix.F_SETLKW)}
	p[unix.SYS_IOCTL] = action{errno: unix.ENOTTY, alternatives: anyOf(1, deviceRequests...)}
	// Dropping a file's pages from memory would slow down everyone who uses the file.
	p.only(unix.SYS_FADVISE64, isNone(3, adviseDontNeed))
	p.only(unix.SYS_PERSONALITY, anyOf(0, askPersonality)...)
	p.only(unix.SYS_PRCTL, anyOf(0, processAttributes...)...)
	return p
}

// lacksUrgent holds if the flags in an argument do not ask for out-of-band bytes (MSG_OOB).
func lacksUrgent(argument uint32) []condition {
	return []condition{{argument: argument, mask: unix.MSG_OOB}}
}

// readsLimits lets a process set its own limits and read those of others. The process that reaps another one reads
// whether the CPU limit has ended it.
func readsLimits() [][]condition { return [][]condition{{equals(0, 0)}, isNull(2)} }

// ZygoteFilter is loaded once, before the first fork; calls inherit it. In a tier with namespaces it is the only one.
// There the zygote mounts a new work folder when it has to; mounting needs a capability that calls have given up.
func ZygoteFilter(namespaces bool) string {
	p := basePolicy()
	p.only(unix.SYS_PRLIMIT64, readsLimits()...)
	if namespaces {
		p.allow(unix.SYS_MOUNT, unix.SYS_UMOUNT2)
		return assemble(p)
	}
	p.allow(unix.SYS_SECCOMP)
	p.only(unix.SYS_PRCTL, anyOf(0, append([]uint32{unix.PR_SET_PDEATHSIG}, processAttributes...)...)...)
	return assemble(p)
}

// CallFilter is loaded by each child if the tier has no process namespace. It refuses new processes (threads are
// allowed) and signals, so that killing the child ends the whole call and the call cannot reach the zygote. Without a
// mount namespace it also refuses changes to files' metadata.
func CallFilter() string {
	p := maps.Clone(basePolicy())
	p.refuse(unix.EPERM, signals...)
	p.refuse(unix.EPERM, forks...)
	p.refuse(unix.EPERM, metadataCalls...)
	p.refuse(unix.EPERM, olderMetadataCalls...)
	p.only(unix.SYS_CLONE, []condition{{mask: unix.CLONE_THREAD, value: unix.CLONE_THREAD}})
	return assemble(p)
}
