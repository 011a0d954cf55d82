# Confinement: what the zygote does once, before it forks. Every call inherits it.

import ctypes
import os
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
ROOT_NEEDS = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
OLD = "/.old"

# From linux/mount.h, linux/prctl.h, linux/seccomp.h. The numbers of mount_setattr and of Landlock's system calls are
# the same on every architecture.
MS_NOSUID, MS_NODEV, MS_NOATIME, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 1024, 4096, 16384, 1 << 18
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_MOUNT_SETATTR = 442
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, SECCOMP_FILTER_FLAG_NEW_LISTENER = 1, 4, 8


def check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, what + ": " + os.strerror(number))
    return result


def syscall(what, number, *args):
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    return check(LIBC.syscall(ctypes.c_long(number), *words), what)


def mount(source, target, kind, flags, options=None):
    encode = lambda text: None if text is None else text.encode()
    done = LIBC.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(options))
    check(done, "mount " + target)


def unmount(target):
    check(LIBC.umount2(target.encode(), MNT_DETACH), "unmount " + target)


def no_new_privileges():
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs")


def install_filter(program, number, flags=SECCOMP_FILTER_FLAG_SPEC_ALLOW):
    """Load a seccomp filter; program is an array of struct sock_filter, 8 bytes each. Return the kernel's result."""
    if not program:
        return -1
    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    whole = Program(len(program) // 8, ctypes.addressof(code))
    return syscall("load seccomp filter", number, SECCOMP_SET_MODE_FILTER, flags, ctypes.byref(whole))


def install_kill_filter(program, number):
    """Load the filter that reports kills. Return its listener, or −1 if the kernel cannot report."""
    try:
        return install_filter(program, number, SECCOMP_FILTER_FLAG_SPEC_ALLOW | SECCOMP_FILTER_FLAG_NEW_LISTENER)
    except OSError:
        return -1


class Capabilities:
    """The thread's capability sets. Buffers and functions are created in advance: whatever a child calls
    for the first time makes it copy pages."""

    def __init__(self):
        self.header = struct.pack("=Ii", 0x20080522, 0)  # version 3, this process
        self.none = bytes(24)
        self.set = LIBC.capset
        self.set.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
        self.keep()

    def keep(self):
        """Set the current capabilities again, so that the function is bound and its pages are loaded."""
        now = ctypes.create_string_buffer(24)
        check(LIBC.capget(self.header, now), "read capabilities")
        check(self.set(self.header, now.raw), "set capabilities")

    def drop(self):
        if self.set(self.header, self.none) != 0:
            raise OSError(ctypes.get_errno(), "drop capabilities")


def read_needs(paths):
    """Return the folders that the interpreter reads, shortest first, none inside another."""
    wanted = {os.path.abspath(p) for p in paths}
    for path in list(wanted):
        wanted.add(os.path.realpath(path))
    kept = []
    for path in sorted(p for p in wanted if os.path.lexists(p)):
        if not any(path.startswith(k + "/") for k in kept if not os.path.islink(k)):
            kept.append(path)
    return kept


def mount_point(path, folder):
    os.makedirs(path if folder else os.path.dirname(path), mode=0o755, exist_ok=True)
    if not folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def bind(path, source):
    """Mount a path of the old root at the same place in the new root."""
    if os.path.islink(source):
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        os.symlink(os.readlink(source), path)
        return
    mount_point(path, os.path.isdir(source))
    mount(source, path, None, MS_BIND | MS_REC)


def without_links(path):
    """Return the path with the links among its folders followed. The old root's absolute links lead nowhere later."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def new_root(needs, folder, pivot_root):
    """Switch to a read-only root that holds only the interpreter, a few devices and the work folder.

    There is no /proc, no /tmp and no /dev/shm, so calls can neither see the host or earlier
    calls there, nor leave anything behind.
    """
    sources = {path: OLD + without_links(path) for path in needs}
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("root", "/tmp", "tmpfs", MS_NOSUID, "size=1m,mode=0755")
    os.mkdir("/tmp" + OLD)
    syscall("pivot root", pivot_root, ctypes.c_char_p(b"/tmp"), ctypes.c_char_p(("/tmp" + OLD).encode()))
    os.chdir("/")
    for path, source in sources.items():
        bind(path, source)
    os.mkdir(folder)
    unmount(OLD)
    os.rmdir(OLD)
    attributes = struct.pack("=QQQQ", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0, 0)
    syscall("make root read-only", SYS_MOUNT_SETATTR, AT_FDCWD, ctypes.c_char_p(b"/"), AT_RECURSIVE,
            ctypes.c_char_p(attributes), len(attributes))


def rename_host():
    """Hide the host's name: calls must not know it, and results must not depend on it."""
    name = b"sandbox"
    check(LIBC.sethostname(name, ctypes.c_size_t(len(name))), "set host name")


def fresh_folder(folder):
    # The sizes bound what one call can fill. RLIMIT_AS does not count the memory of a tmpfs.
    mount("work", folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOATIME, "size=16m,nr_inodes=1024,mode=0700")


def landlock(needs, folder):
    """Without namespaces: allow calls to read only the interpreter and to write only the work folder."""
    create, add, restrict = 444, 445, 446
    abi = syscall("ask for landlock", create, None, 0, 1)
    handled = (1 << 13) - 1
    for version, bits in ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15)):
        if abi >= version:
            handled |= bits
    network = 0b11  # TCP bind and connect, from version 4 on
    scoped = 0b11  # abstract sockets and signals to processes outside, from version 6 on
    attributes = struct.pack("=QQQ", handled, network, scoped)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    ruleset = syscall("create landlock ruleset", create, ctypes.c_char_p(attributes), len(attributes), 0)
    read_file, read = 0b101, 0b1101  # execute, read file, read folder
    rules = [(path, read if os.path.isdir(path) else read_file) for path in needs if path not in DEVICES]
    rules += [(path, 0b110) for path in needs if path in DEVICES]
    rules.append((folder, handled))
    for path, rights in rules:
        if os.path.islink(path):
            continue
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = ctypes.c_char_p(struct.pack("=Qi", rights, opened))
        syscall("add landlock rule", add, ruleset, 1, rule, 0)
        os.close(opened)
    no_new_privileges()
    syscall("enter landlock", restrict, ruleset, 0)
    os.close(ruleset)
