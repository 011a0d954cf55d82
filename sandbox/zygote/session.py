# Sessions. The *mother* is a zygote that makes sessions instead of calls. Each session has an *init*,
# which waits for its *interpreter*; the interpreter reads cells from its socket and answers them.
#
# In the tier "full" the init is the first process of namespaces of the session's own: what it and the
# interpreter leave behind ends with it. In the other tiers nothing can be left behind (see filter.go),
# so the mother is the init of all.

import fcntl
import select

OPEN = struct.Struct("=cQQQqQ")  # kind, id, memory bytes, bytes of one file, processes, bytes of the work folder
NOTE = struct.Struct("=cQiQQ")  # kind, id, wait status, CPU microseconds, KiB resident at most
NEW_NAMESPACES = 0x10000000 | 0x20000000 | 0x20000 | 0x8000000  # user, process ids, mounts, IPC
INODES = 1024


def make_pidfd(pid, flags):
    return syscall("open pidfd", 434, pid, flags)


open_pidfd = getattr(os, "pidfd_open", make_pidfd)  # Python 3.9 has its own


class Opening:
    """A session as the mother is told of it; fds are its socket and the write ends of stdout and stderr."""

    __slots__ = ("id", "memory", "file", "processes", "room", "fds")

    def __init__(self, packet, fds):
        _, self.id, self.memory, self.file, self.processes, self.room = OPEN.unpack_from(packet)
        self.fds = list(fds)


class Mother(Zygote):
    def __init__(self, settings):
        super().__init__(settings)
        self.poll = select.poll()
        self.poll.register(self.link, select.POLLIN)
        self.inits = {}  # descriptor of an init: its process id, the session's id
        self.session_filter = bytes.fromhex(settings["session_filter"])
        self.proc = -1
        self.needs = ()
        # As with fork, PyDLL keeps the interpreter's lock over the call.
        clone = ctypes.PyDLL(None, use_errno=True).syscall
        clone.argtypes = (ctypes.c_long,) * 6
        self.clone = lambda: clone(settings["clone"], NEW_NAMESPACES | signal.SIGCHLD, 0, 0, 0, 0)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a descriptor for each session

    def confine(self, settings):
        self.needs = read_needs(ROOT_NEEDS + DEVICES + (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix) + STANDARD + tuple(self.visible))
        super().confine(settings)

    def set_lasting_limits(self):
        """None: each session sets its own, and a new user namespace would keep the mother's for its parent's."""

    def forbid_namespaces(self):
        """Sessions forbid them each in its own user namespace; for that they need /proc a moment longer."""
        self.proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def note(self, kind, id, status=0, usage=None, fds=()):
        microseconds, peak = (0, 0) if usage is None else (int((usage.ru_utime + usage.ru_stime) * 1e6), usage.ru_maxrss)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.link.sendmsg([NOTE.pack(kind, id, status, microseconds, peak)], rights)

    def serve(self):
        while True:
            for fd, _ in self.poll.poll():
                if fd != self.link.fileno():
                    self.bury(fd)
                    continue
                fds = self.receive()
                self.open(Opening(self.packet, fds))
                for fd in fds:
                    os.close(fd)

    def open(self, opening):
        try:
            pid = self.clone() if self.namespaced else plain_fork()
            if pid == 0:
                begin(self, opening)
            check(pid, "make session")
            watch = open_pidfd(pid, 0)
        except OSError as error:
            complain(opening.fds[0], error)
            self.note(b"D", opening.id)
            return
        self.inits[watch] = pid, opening.id
        self.poll.register(watch, select.POLLIN)
        if not self.namespaced:
            self.note(b"B", opening.id, fds=(watch, watch))

    def bury(self, watch):
        """Reap a session's init and say that nothing of the session is left."""
        pid, id = self.inits.pop(watch)
        self.poll.unregister(watch)
        _, status, usage = os.wait4(pid, 0)
        os.close(watch)
        if not self.namespaced:
            try:
                os.killpg(pid, signal.SIGKILL)  # only in the weakest tier can there be others
            except OSError:
                pass
            remove(session_folder(self, id))
            self.note(b"E", id, status, usage)
        self.note(b"D", id, status)


def session_folder(mother, id):
    return mother.folder if mother.namespaced else os.path.join(mother.folder, str(id))


def remove(folder):
    if os.path.isdir(folder):
        os.chmod(folder, 0o700)
        empty(folder)
        os.rmdir(folder)


def begin(mother, opening):
    """The new process: make the session's world, then serve cells or wait for the one that does."""
    socket_fd = opening.fds[0]
    try:
        if not mother.namespaced:
            interpreter(mother, opening)
        become_user(mother.proc)
        session_mount(mother.folder, opening.room)
        pid = plain_fork()
        if pid == 0:
            interpreter(mother, opening)
        init(mother, opening, pid)
    except BaseException as error:
        complain(socket_fd, error)
    os._exit(1)


def complain(fd, error):
    try:
        os.write(fd, ("X%s: %s" % (type(error).__name__, error)).encode("utf-8", "replace")[:2000])
    except OSError:
        pass


def write_control(proc, path, text):
    fd = os.open(path, os.O_WRONLY, dir_fd=proc)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def become_user(proc):
    """Keep the same ids in the new user namespace, which then takes no other below it."""
    user, group = b"%d" % INSIDE[0], b"%d" % INSIDE[1]
    write_control(proc, "self/setgroups", b"deny")
    write_control(proc, "self/uid_map", user + b" " + user + b" 1")
    write_control(proc, "self/gid_map", group + b" " + group + b" 1")
    try:
        write_control(proc, "sys/user/max_user_namespaces", b"0")
    except OSError:
        pass  # /proc/sys may be read-only; the session's filter refuses them as well


INSIDE = os.getuid(), os.getgid()  # read before the new namespace shows them as unmapped


def session_mount(folder, room):
    mount("work", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=%d,nr_inodes=%d,mode=0700" % (room, INODES))


def init(mother, opening, pid):
    """Wait for the interpreter, tell how it ended, and end all others by ending."""
    mother.capabilities.drop()
    fds = [open_pidfd(os.getpid(), 0), open_pidfd(pid, 0)]
    mother.note(b"B", opening.id, fds=fds)
    link = mother.link.fileno()
    os.closerange(0, link)
    os.closerange(link + 1, highest(mother))
    while True:
        ended, status, usage = os.wait4(-1, 0)
        if ended == pid:
            mother.note(b"E", opening.id, status, usage)
            os._exit(0)


def highest(mother):
    """One above the highest descriptor that a new session may have inherited."""
    return max([mother.highest, *mother.inits]) + 16


def interpreter(mother, opening):
    """The process in which cells run. It never returns."""
    try:
        settle(mother, opening)
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, CONTROL)
        os.write(CONTROL, b"S")
    except BaseException as error:
        complain(opening.fds[0], error)
        os._exit(1)
    try:
        Cells(peer, session_folder(mother, opening.id)).serve()
    finally:
        os._exit(1)


def settle(mother, opening):
    """Take the descriptors' places, set limits, give up what is left of privilege."""
    global PID
    PID = os.getpid()
    os.setsid()
    if mother.orphaned_by_parent:
        LIBC.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)
    folder = session_folder(mother, opening.id)
    if not mother.namespaced:
        os.mkdir(folder, 0o700)
    # The mother's descriptors below 3 are its own streams; these are above.
    opening.fds[:] = [fcntl.fcntl(fd, fcntl.F_DUPFD, CONTROL + 1) for fd in opening.fds]
    for fd, place in zip(opening.fds, (CONTROL, 1, 2)):
        os.dup2(fd, place, place != CONTROL)
    opening.fds[0] = CONTROL
    if mother.tier == "landlock":
        landlock(mother.needs, folder)
    os.closerange(CONTROL + 1, highest(mother))
    forget_boards()
    os.chdir(folder)
    os.umask(0o077)
    if mother.namespaced:
        mother.capabilities.drop()
    install_filter(mother.session_filter, mother.seccomp)
    session_limits(mother, opening)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.insert(0, folder)
    gc.enable()


def forget_boards():
    """The zygote's shared memory is there in every session; it must not join them."""
    LIBC.munmap(ctypes.c_void_p(BOARD_AT), ctypes.c_size_t(len(BOARD)))
    BEGUN.close()


def session_limits(mother, opening):
    # CPU time is measured by the parent, cell by cell: a limit of the kernel's cannot be raised again.
    limit(resource.RLIMIT_FSIZE, opening.file)
    limit(resource.RLIMIT_NOFILE, 64)
    limit(resource.RLIMIT_CORE, 0)
    if mother.namespaced:
        limit(resource.RLIMIT_NPROC, opening.processes + 1)  # and the init
    most = mother.baseline + opening.memory
    limit(resource.RLIMIT_AS, most, most + RESERVE)
