package sandbox_test

import "github.com/ropewalk/ropewalk/sandbox"

// fileThreats try to reach files outside of the work folder.
var fileThreats = []threat{
	{name: "files of root", holds: sandbox.TierRlimits,
		code: `for path in ("/etc/shadow", "/root/.ssh/id_rsa", "/proc/kcore", "/proc/1/mem", "/proc/1/environ"):
    attempt(path, open, path)
through`},
	{name: "files of the host", holds: sandbox.TierLandlock,
		code: `for path in (FILE, "/etc/passwd", "/etc/hostname", "/etc/resolv.conf", "/proc/version"):
    attempt(path, open, path)
for path in ("/home", "/root", "/tmp", "/var/log", os.path.dirname(FILE), "/etc"):
    found = attempt(path, os.listdir, path)
    if path == "/etc" and found and set(found) <= {"ld.so.cache", "alternatives"}: through.pop()
through`},
	{name: "changing files of the host", holds: sandbox.TierLandlock,
		code: `sibling = os.path.join(os.path.dirname(FILE), "new")
for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
    attempt(str(flags), os.open, FILE, flags)
attempt("create", os.open, sibling, os.O_CREAT | os.O_WRONLY)
attempt("truncate", os.truncate, FILE, 0)
attempt("unlink", os.unlink, FILE)
attempt("rename", os.rename, FILE, sibling)
attempt("mkdir", os.mkdir, sibling)
attempt("mkfifo", os.mkfifo, sibling)
attempt("symlink", os.symlink, "x", sibling)
for folder in ("/", "/tmp", "/dev/shm", "/var/tmp", "/usr", "/etc", "/dev", "/run"):
    attempt(folder, open, os.path.join(folder, "ropewalk-probe"), "w")
through`},
	{name: "changing metadata of the host's files", holds: sandbox.TierRlimits, code: `here = os.path.dirname(FILE)
attempt("chmod", os.chmod, FILE, 0o777)
attempt("chown", os.chown, FILE, os.getuid(), os.getgid())
attempt("utime", os.utime, FILE, (0, 0))
attempt("setxattr", os.setxattr, FILE, "user.x", b"x")
attempt("folder", os.chmod, here, 0)
attempt("above", os.chmod, "..", 0)
through`},
	{name: "symbolic links to the host", holds: sandbox.TierLandlock, collect: []string{"link", "folder/canary"},
		code: `os.symlink(FILE, "link")
os.symlink(os.path.dirname(FILE), "folder")
attempt("read", open, "link")
attempt("write", open, "link", "w")
attempt("sibling", open, "folder/new", "w")
attempt("list", os.listdir, "folder")
through`},
	{name: "hard links to the host", holds: sandbox.TierLandlock, collect: []string{"link", "shadow"},
		code: `attempt("canary", os.link, FILE, "link")
attempt("shadow", os.link, "/etc/shadow", "shadow")
attempt("out", os.link, "/usr/bin/env", os.path.join(os.path.dirname(FILE), "out"))
through`},
	{name: "traps in place of files to collect", holds: sandbox.TierRlimits,
		collect: []string{"pipe", "zero", "loop", "folder", "locked"},
		code: `os.mkfifo("pipe")
os.symlink("/dev/zero", "zero")
os.symlink("loop", "loop")
os.mkdir("folder")
os.close(os.open("locked", os.O_CREAT | os.O_WRONLY, 0))
through`},
	{name: "the work folder's surroundings", holds: sandbox.TierLandlock, code: `here = os.getcwd()
attempt("create", open, "../new", "w")
attempt("rename", os.rename, here, here + "-moved")
attempt("replace", os.rmdir, here)
if os.path.dirname(here) != "/": attempt("list", os.listdir, "..")
through`},
	{name: "environment", holds: sandbox.TierRlimits,
		code: `environ = ctypes.POINTER(ctypes.c_char_p).in_dll(LIBC, "environ")
native = [environ[0]] if environ and environ[0] else []
[*os.environ, *native] + [n for n in ("ROPEWALK_SECRET", "PATH", "HOME") if os.getenv(n)]`},
	{name: "environment of the interpreter's process", holds: sandbox.TierLandlock,
		code: `for pid in ("self", os.getpid(), os.getppid(), HOST, 1):
    attempt(str(pid), open, "/proc/%s/environ" % pid)
through`},
	{name: "the host's name", holds: sandbox.TierFull, code: `kernel("sethostname", b"owned", 5)
[] if os.uname().nodename == "sandbox" and not through else [os.uname().nodename]`},
	{name: "memory and descriptors by /proc", holds: sandbox.TierLandlock,
		code: `for pid in ("self", os.getppid(), HOST, 1):
    for what in ("mem", "maps", "fd", "root", "status"):
        path = "/proc/%s/%s" % (pid, what)
        attempt(path, os.open, path, os.O_RDONLY)
attempt("oom", open, "/proc/self/oom_score_adj", "w")
through`},
	{name: "the kernel's switches in /proc and /sys", holds: sandbox.TierRlimits,
		code: `for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
        "/proc/sys/vm/overcommit_memory",
             "/sys/power/state", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs"):
    attempt(path, os.open, path, os.O_WRONLY)
attempt("next process id", lambda: os.write(os.open("/proc/sys/kernel/ns_last_pid", os.O_WRONLY), b"300"))
through`},
	{name: "looking around in /proc and /sys", holds: sandbox.TierLandlock,
		code: `for path in ("/proc", "/proc/self", "/proc/net", "/sys", "/sys/class/net", "/sys/fs/cgroup", "/run"):
    attempt(path, os.listdir, path)
through`},
	{name: "devices", holds: sandbox.TierLandlock,
		code: `for name in ("mem", "kmem", "kmsg", "port", "kvm", "fuse", "net/tun", "vda", "sda", "tty", "ptmx",
        "console", "loop-control", "userfaultfd", "vhost-net", "vsock", "nvidiactl"):
    attempt(name, os.open, "/dev/" + name, os.O_RDWR | os.O_NONBLOCK)
attempt("list", os.listdir, "/dev/pts")
through`},
	{name: "making devices", holds: sandbox.TierRlimits, code: `import stat
for kind in (stat.S_IFCHR, stat.S_IFBLK): attempt(str(kind), os.mknod, "device", kind | 0o666, os.makedev(1, 1))
through`},
	{name: "file handles", holds: sandbox.TierRlimits,
		code: `kernel("name_to_handle_at", -100, b".", ctypes.create_string_buffer(bytes([128, 0, 0, 0]) + bytes(140)),
        ctypes.byref(ctypes.c_int()), 0)
kernel("open_by_handle_at", 0, ctypes.create_string_buffer(bytes([8, 0, 0, 0, 1, 0, 0, 0]) + bytes(140)), 0)
through`},
	{name: "extended attributes left on the folder", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: `os.setxattr(".", "user.left", b"x" * 1000)`},
	{name: "a folder that cannot be entered", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: `open("left", "w").close()
os.chmod(".", 0)`},
}
