package sandbox_test

import "github.com/ropewalk/ropewalk/sandbox"

// leftoverThreats try to leave something for a later call, or to find something of another call.
var leftoverThreats = []threat{
	{name: "System V shared memory", holds: sandbox.TierRlimits, code: `kernel("shmget", 4242, 4096, 0o1666)
kernel("semget", 4242, 1, 0o1666)
kernel("msgget", 4242, 0o1666)
through`},
	{name: "POSIX shared memory", holds: sandbox.TierLandlock, code: `from multiprocessing import shared_memory
attempt("shm", shared_memory.SharedMemory, "ropewalk-left", True, 4096)
attempt("file", open, "/dev/shm/ropewalk-left", "w")
through`},
	{name: "POSIX message queues", holds: sandbox.TierRlimits,
		code: `kernel("mq_open", b"ropewalk-left", 0o102, 0o666, None)
through`},
	{name: "files in memory", holds: sandbox.TierRlimits, code: `kernel("memfd_create", b"left", 0)
through`},
	{name: "files, folders, links, permissions", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: `open("left", "w").write("x")
os.makedirs("a/b/c")
open("a/b/c/deep", "w").write("x")
os.symlink("/usr", "link")
os.link("left", "second")
os.mkfifo("pipe")
os.chmod("a/b", 0)
os.chmod("a", 0)`},
	{name: "descriptors left open", holds: sandbox.TierRlimits,
		code: `kept = [os.open("left", os.O_CREAT | os.O_RDWR), *os.pipe(), socket.socketpair()]
for fd in range(40, 60): os.dup2(1, fd)
os.set_inheritable(kept[0], True)
os.unlink("left")
through`},
	{name: "descriptors passed", holds: sandbox.TierRlimits, code: `one, other = socket.socketpair()
for _ in range(20): attempt("send", socket.send_fds, one, [b"x"], [0, 1, 2, one.fileno(), other.fileno()])
through`},
	{name: "file locks and leases", holds: sandbox.TierRlimits, code: `import fcntl
for path in ("/usr/bin/env", os.__file__):
    file = open(path)
    attempt("lease", fcntl.fcntl, file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    attempt("notify", fcntl.fcntl, file, fcntl.F_NOTIFY, 1)
    attempt("lock", fcntl.flock, file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    attempt("lock of an open file", fcntl.fcntl, file, 37, bytes(32))
through`},
	{name: "flags, hints and cached pages of files", holds: sandbox.TierRlimits, code: `import fcntl, struct
for path in (".", FILE, os.__file__):
    try: file = os.open(path, os.O_RDONLY)
    except OSError: continue
    for request in (0x40086602, 0x401c5820, 0x40087602, 0x40049409):
        attempt("ioctl %x" % request, fcntl.ioctl, file, request, bytes(28))
    attempt("hint", fcntl.fcntl, file, 1036, struct.pack("q", 5))
    attempt("cached pages", os.posix_fadvise, file, 0, 0, os.POSIX_FADV_DONTNEED)
through`},
	{name: "pages of pipes and waiting signals", holds: sandbox.TierRlimits, code: `import fcntl
attempt("larger pipe", fcntl.fcntl, os.pipe()[1], 1031, 1 << 20)
signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 64))
n = 0
while n < 1000 and LIBC.sigqueue(os.getpid(), 40, None) == 0: n += 1
[*through, n] if n > 128 else through`},
	{name: "times and numbers in the folder", holds: sandbox.TierRlimits, ends: wellOrNot, code: `open("a", "w").close()
os.unlink("a")
for times in ((9, 9), (0, 0)): attempt("times", os.utime, ".", times)`},
	{name: "another slot's files", holds: sandbox.TierLandlock, code: `for n in range(64):
    for name in (str(n), "%d-bare" % n): attempt(name, os.chmod, os.path.join("..", name), 0)
import glob
[*through, *glob.glob(os.path.join(os.path.dirname(os.getcwd()), "[0-9]*"))]`},
	{name: "timers and alarms", holds: sandbox.TierRlimits, code: `signal.setitimer(signal.ITIMER_REAL, 60, 1)
signal.alarm(60)
through`},
	{name: "masked signals, handlers, umask, terminal", holds: sandbox.TierRlimits,
		code: `signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
for n in (2, 14, 15): signal.signal(n, lambda *_: None)
os.umask(0o777)
through`},
}
