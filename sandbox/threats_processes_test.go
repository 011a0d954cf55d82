package sandbox_test

import "github.com/ropewalk/ropewalk/sandbox"

// processThreats try to reach other processes, or to leave some behind.
var processThreats = []threat{
	{name: "killing the parent", holds: sandbox.TierRlimits, code: `for n in range(1, 65):
    try: os.kill(os.getppid(), n)
    except OSError: pass
time.sleep(.02)
through`},
	{name: "killing the parent by other calls", holds: sandbox.TierRlimits, code: `parent = os.getppid()
for n in (2, 9, 15, 19):
    for name, args in (("tgkill", (parent, parent, n)),
            ("rt_sigqueueinfo", (parent, n, ctypes.create_string_buffer(128)))):
        LIBC.syscall(SYS[name], *args)
    handle = LIBC.syscall(SYS["pidfd_open"], parent, 0)
    if handle >= 0: LIBC.syscall(SYS["pidfd_send_signal"], handle, n, None, 0)
time.sleep(.02)
through`},
	{name: "killing every process", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: `for target in (VICTIM, HOST, 1, -1, 0):
    for n in (2, 15, 9):
        if target == 0 and n != 2: continue
        try: os.kill(target, n)
        except (OSError, KeyboardInterrupt): pass
time.sleep(.02)`},
	{name: "signals by a descriptor's owner", holds: sandbox.TierRlimits, code: `import fcntl, struct
for target in (os.getppid(), VICTIM, HOST):
    one, other = socket.socketpair()
    attempt("owner", fcntl.fcntl, one, fcntl.F_SETOWN, target)
    attempt("owner ex", fcntl.fcntl, one, 15, struct.pack("ii", 1, target))
    attempt("signal", fcntl.fcntl, one, 10, 9)
    for word in (0x8901, 0x8902): attempt("ioctl", fcntl.ioctl, one, word, struct.pack("i", target))
    fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC)
    other.send(b"x")
time.sleep(.02)
through`},
	{name: "tracing", holds: sandbox.TierRlimits, code: `for target in (os.getppid(), VICTIM, HOST, 1):
    for request in (16, 0x4206): kernel("ptrace", request, target, 0, 0)
through`},
	{name: "other processes' memory", holds: sandbox.TierRlimits, code: `piece = ctypes.create_string_buffer(64)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(piece), 8)
there = (ctypes.c_size_t * 2)(ctypes.addressof(piece), 8)
for target in (os.getppid(), VICTIM, HOST):
    for name in ("process_vm_readv", "process_vm_writev"): kernel(name, target, vector, 1, there, 1, 0)
    kernel("move_pages", target, 0, None, None, None, 0)
    kernel("migrate_pages", target, 1, ctypes.byref(ctypes.c_ulong(1)), ctypes.byref(ctypes.c_ulong(1)))
    kernel("kcmp", target, os.getpid(), 0, 1, 1)
through`},
	{name: "other processes' descriptors", holds: sandbox.TierRlimits,
		code: `for target in (os.getppid(), VICTIM, HOST):
    handle = LIBC.syscall(SYS["pidfd_open"], target, 0)
    for fd in range(8): kernel("pidfd_getfd", handle, fd, 0)
    kernel("process_madvise", handle, (ctypes.c_size_t * 2)(0, 4096), 1, 4, 0)
    kernel("setns", handle, 0)
through`},
	{name: "other processes' limits", holds: sandbox.TierRlimits, code: `import resource
for target in (os.getppid(), VICTIM, HOST):
    for kind in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_NPROC):
        attempt(str(kind), resource.prlimit, target, kind, (1, 1))
through`},
	{name: "other processes' priority, class and CPUs", holds: sandbox.TierRlimits,
		code: `for target in (os.getppid(), VICTIM, HOST):
    attempt("priority", os.setpriority, os.PRIO_PROCESS, target, 19)
    attempt("class", os.sched_setscheduler, target, os.SCHED_IDLE, os.sched_param(0))
    attempt("CPUs", os.sched_setaffinity, target, {0})
    kernel("ioprio_set", 1, target, 3 << 13)
    kernel("sched_setattr", target, ctypes.create_string_buffer(bytes([48, 0, 0, 0, 5, 0, 0, 0]) + bytes(40)), 0)
for user in (0, os.getuid()): attempt("user", os.setpriority, os.PRIO_USER, user, 19)
kernel("ioprio_set", 3, os.getuid(), 3 << 13)
through`},
	{name: "seeing other processes", holds: sandbox.TierFull, code: `for target in (VICTIM, HOST):
    for name, look in (("kill", lambda p: os.kill(p, 0)), ("group", os.getpgid), ("session", os.getsid),
            ("CPUs", os.sched_getaffinity)):
        attempt(name, look, target)
[*through, os.getppid()] if os.getppid() != 1 else through`},
	{name: "daemon by a double fork", holds: sandbox.TierRlimits, code: `try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(64):
                try: os.close(fd)
                except OSError: pass
            for n in range(1, 65):
                try: signal.signal(n, signal.SIG_IGN)
                except (OSError, ValueError): pass
            time.sleep(3600)
        os._exit(0)
    time.sleep(.02)
except OSError: pass
through`},
	{name: "daemon by setsid of a program", holds: sandbox.TierRlimits, code: `import subprocess
try: subprocess.Popen(["/bin/sleep", "3600"], start_new_session=True)
except OSError: pass
through`},
	{name: "daemon that keeps the output open", holds: sandbox.TierRlimits, code: `try:
    if os.fork() == 0:
        os.setsid()
        while True: time.sleep(60)
except OSError: pass
print("left")
through`},
	{name: "zombies", holds: sandbox.TierRlimits, code: `try:
    for _ in range(20):
        if os.fork() == 0: os._exit(0)
except OSError: pass
through`},
	{name: "outliving the parent", holds: sandbox.TierRlimits, code: `asked = LIBC.prctl(1, 0, 0, 0, 0)
[] if os.getppid() == 1 or asked != 0 else ["no longer ends with the zygote"]`},
	{name: "sibling by clone with the parent's parent", holds: sandbox.TierRlimits,
		code: `pid = LIBC.syscall(ctypes.c_long(SYS["clone"]), ctypes.c_long(0x8000 | 2), 0, 0, 0,
        0)  # CLONE_PARENT, SIGINT at its end
if pid == 0: os._exit(7)
time.sleep(.02)
through`},
	{name: "becoming another user", holds: sandbox.TierRlimits, code: `mine = os.getuid(), os.getgid()
for name, act, args in (("setuid", os.setuid, (0,)), ("setgid", os.setgid, (0,)),
        ("setresuid", os.setresuid, (0, 0, 0)), ("setreuid", os.setreuid, (0, 0)),
                        ("setgroups", os.setgroups, ([0],)), ("other", os.setuid, (1,))): attempt(name, act, *args)
kernel("capset", b"\x22\x05\x08\x20" + bytes(4), b"\xff" * 24)
through if (os.getuid(), os.getgid()) == mine else ["ids"]`},
	{name: "programs with another user's rights", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: `os.execv("/bin/su", ["su", "-c", "id -u"]) if os.path.exists("/bin/su") else os.execv("/usr/bin/passwd",
        ["passwd", "-S"])`},
}
