# Sessions. The *fork server* is a zygote that starts sessions instead of calls. Each session has an *init*, which waits
# for its *interpreter*. The interpreter reads cells from its socket and answers them.
#
# In the tier "full" the init is the first process of the session's own namespaces, so everything that it and the
# interpreter start ends with it. In the other tiers processes cannot be left behind (see filter.go), so the fork server
# is the init of all sessions.

import fcntl
import select

OPEN = struct.Struct("=cQQQqQQ")  # kind, id, memory bytes, bytes of one file, processes, bytes of the work folder, user
NOTE = struct.Struct("=cQiQQ")  # kind, id, wait status, CPU microseconds, KiB resident at most
NEW_NAMESPACES = 0x10000000 | 0x20000000 | 0x20000 | 0x8000000  # user, process ids, mounts, IPC
INODES = 1024


def make_pidfd(pid, flags):
    return syscall("open pidfd", 434, pid, flags)


open_pidfd = getattr(os, "pidfd_open", make_pidfd)  # built in from Python 3.9 on


class Opening:
    """A request for a session. fds are its socket and the write ends of stdout and stderr."""

    __slots__ = ("id", "memory", "file", "processes", "room", "user", "fds")

    def __init__(self, packet, fds):
        _, self.id, self.memory, self.file, self.processes, self.room, self.user = OPEN.unpack(packet)
        self.fds = list(fds)


class ForkServer(Zygote):
    head = OPEN

    def __init__(self, settings):
        super().__init__(settings)
        self.soft = resource.getrlimit(resource.RLIMIT_CPU)[0]
        self.poll = select.poll()
        self.poll.register(self.link, select.POLLIN)
        self.inits = {}  # descriptor of an init → its process id, the session's id
        self.session_filter = bytes.fromhex(settings["session_filter"])
        self.proc = -1
        self.needs = ()
        # As with fork, PyDLL keeps the interpreter's lock during the call.
        clone = ctypes.PyDLL(None, use_errno=True).syscall
        clone.argtypes = (ctypes.c_long,) * 6
        self.clone = lambda: clone(settings["clone"], NEW_NAMESPACES | signal.SIGCHLD, 0, 0, 0, 0)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each session needs a descriptor

    def confine(self, settings):
        prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
        self.needs = read_needs(ROOT_NEEDS + DEVICES + prefixes + STANDARD + tuple(self.visible))
        super().confine(settings)

    def set_lasting_limits(self):
        """Set none: each session sets its own. A new user namespace would count the fork server's as its parent's."""

    def report_kills(self):
        """Report nothing yet: each session's init loads the filter for its session."""

    def forbid_namespaces(self):
        """Keep /proc open: each session needs it to forbid namespaces in its own user namespace."""
        self.proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def note(self, kind, id, status=0, usage=None, fds=()):
        microseconds, peak = 0, 0
        if usage is not None:
            microseconds, peak = int((usage.ru_utime + usage.ru_stime) * 1e6), usage.ru_maxrss
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.link.sendmsg([NOTE.pack(kind, id, status, microseconds, peak)], rights)

    def serve(self):
        while True:
            for fd, _ in self.poll.poll():
                if fd != self.link.fileno():
                    self.reap(fd)
                    continue
                fds = self.receive()
                self.open(Opening(self.packet, fds))
                for fd in fds:
                    os.close(fd)

    def open(self, opening):
        try:
            pid = self.clone_as(opening.user) if self.namespaced else plain_fork()
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

    def clone_as(self, user):
        """Create the session's process as the user, or as this process's if it is 0. The host counts it separately."""
        if not user:
            return self.clone()
        become(user)
        pid = self.clone()
        fault = ctypes.get_errno()
        if pid != 0:
            become(INSIDE[0])
            ctypes.set_errno(fault)
        return pid

    def reap(self, watch):
        """Reap a session's init and report that all processes of the session have ended."""
        pid, id = self.inits.pop(watch)
        self.poll.unregister(watch)
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        limit = not self.namespaced and ended_by_cpu_limit(ended, pid, self.soft)
        _, status, usage = os.wait4(pid, 0)
        os.close(watch)
        if not self.namespaced:
            try:
                os.killpg(pid, signal.SIGKILL)  # only in the weakest tier can there be other processes
            except OSError:
                pass
            self.note(b"L" if limit else b"E", id, status, usage)  # before the folder is removed, which may take long
            self.apart(lambda: remove(session_folder(self, id)))
        self.note(b"D", id, status)


def session_folder(server, id):
    return server.folder if server.namespaced else os.path.join(server.folder, str(id))


def remove(folder):
    if os.path.isdir(folder):
        empty(folder)
        os.rmdir(folder)
    return 0


def begin(server, opening):
    """Run in the new process: set up the session, then serve cells or wait for the process that does."""
    socket_fd = opening.fds[0]
    try:
        if not server.namespaced:
            interpreter(server, opening)
        become_user(server.proc, opening.user or INSIDE[0])
        session_mount(server.folder, opening.room)
        listener = install_kill_filter(server.kill_filter, server.seccomp)
        pid = plain_fork()
        if pid == 0:
            if listener >= 0:
                os.close(listener)
            interpreter(server, opening)
        init(server, opening, pid, listener)
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


def become(user):
    """Change the user. The kernel then takes away what a process needs to write its own maps, and the order to end
    with the parent."""
    PR_SET_DUMPABLE = 4
    os.setresuid(user, user, user)
    LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    LIBC.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)


def become_user(proc, user):
    """Be the same user in every new user namespace, and forbid further user namespaces inside it."""
    write_control(proc, "self/setgroups", b"deny")
    write_control(proc, "self/uid_map", b"%d %d 1" % (INSIDE[0], user))
    write_control(proc, "self/gid_map", b"%d %d 1" % (INSIDE[1], INSIDE[1]))
    try:
        write_control(proc, "sys/user/max_user_namespaces", b"0")
    except OSError:
        pass  # /proc/sys may be read-only; the session's filter also refuses namespaces


INSIDE = os.getuid(), os.getgid()  # read now, since the new namespace shows unmapped ids


def session_mount(folder, room):
    mount("work", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=%d,nr_inodes=%d,mode=0700" % (room, INODES))


def init(server, opening, pid, listener):
    """Wait for the interpreter and report how it ended; exiting then ends all other processes. listener reports kills,
    or is −1."""
    server.capabilities.drop()
    fds = [open_pidfd(os.getpid(), 0), open_pidfd(pid, 0)]
    server.note(b"B", opening.id, fds=fds if listener < 0 else fds + [listener])
    link = server.link.fileno()
    os.closerange(0, link)
    os.closerange(link + 1, highest(server))
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | WALL_CHILDREN)
        limit = ended.si_pid == pid and ended_by_cpu_limit(ended, pid, server.soft)
        _, status, usage = os.wait4(ended.si_pid, WALL_CHILDREN)
        if ended.si_pid == pid:
            server.note(b"L" if limit else b"E", opening.id, status, usage)
            os._exit(0)


def highest(server):
    """Return a number above the highest descriptor that a new session may have inherited."""
    return max([server.highest, *server.inits]) + 16


def interpreter(server, opening):
    """Run cells in this process. Never returns."""
    try:
        settle(server, opening)
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, CONTROL)
        os.write(CONTROL, b"S")
    except BaseException as error:
        complain(opening.fds[0], error)
        os._exit(1)
    try:
        Cells(peer, session_folder(server, opening.id)).serve()
    finally:
        os._exit(1)


def settle(server, opening):
    """Move the descriptors to their places, set limits, give up the remaining privileges."""
    global PID
    PID = os.getpid()
    os.setsid()
    if server.orphaned_by_parent:
        LIBC.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)
    folder = session_folder(server, opening.id)
    if not server.namespaced:
        os.mkdir(folder, 0o700)
    # The fork server's descriptors below 3 are its own streams; these are above.
    opening.fds[:] = [fcntl.fcntl(fd, fcntl.F_DUPFD, CONTROL + 1) for fd in opening.fds]
    for fd, place in zip(opening.fds, (CONTROL, 1, 2)):
        os.dup2(fd, place, place != CONTROL)
    opening.fds[0] = CONTROL
    if server.tier == "landlock":
        landlock(server.needs, folder)
    os.closerange(CONTROL + 1, highest(server))
    forget_boards()
    os.chdir(folder)
    os.umask(0o077)
    if server.namespaced:
        server.capabilities.drop()
    install_filter(server.session_filter, server.seccomp)
    session_limits(server, opening)
    sys.path.insert(0, folder)
    gc.enable()


def forget_boards():
    """Give up the zygote's shared memory. Every session inherits it, and sessions must not share memory."""
    LIBC.munmap(ctypes.c_void_p(BOARD_AT), ctypes.c_size_t(len(BOARD)))
    BEGUN.close()


def session_limits(server, opening):
    # The parent measures CPU time cell by cell, because a limit of the kernel cannot be raised again.
    limit(resource.RLIMIT_FSIZE, opening.file)
    limit(resource.RLIMIT_NOFILE, 64)
    limit(resource.RLIMIT_CORE, 0)
    if server.namespaced:
        limit(resource.RLIMIT_NPROC, opening.processes + 1)  # one more for the init
        limit(resource.RLIMIT_SIGPENDING, MOST_SIGNALS)
    most = server.baseline + opening.memory
    limit(resource.RLIMIT_AS, most, most + RESERVE)
