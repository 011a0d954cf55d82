# Serving: the zygote's loop. One zygote runs one call at a time.

import array
import json
import select
import signal
import socket

# Modules that model-written code asks for most; warm here, they cost a call nothing.
import bisect, collections, copy, datetime, decimal, fractions, functools, heapq, itertools, math
import operator, re, statistics, string, time

REQUEST = struct.Struct("=cQIIQQ")  # kind, id, flags, CPU seconds, memory bytes, code bytes
REPLY = struct.Struct("=QiQ")  # id, wait status, CPU microseconds
STDIN = 1


def make_pidfd(pid, flags):
    return syscall("open pidfd", 434, pid, flags)


open_pidfd = getattr(os, "pidfd_open", make_pidfd)  # Python 3.9 has its own


# The C library's fork, without Python's hooks: with one thread there is nothing for them to mend,
# and they would have each child copy some 150 pages (0.7 ms of 1.1) before its first line.
# PyDLL keeps the interpreter's lock over the fork.
fork = ctypes.PyDLL(None).fork


class Job:
    """One call as the zygote knows it; fds are code, stdout, stderr, control and perhaps stdin."""

    __slots__ = ("id", "stdin", "cpu", "memory", "size", "fds")

    def __init__(self, data, fds):
        _, self.id, flags, self.cpu, self.memory, self.size = REQUEST.unpack(data)
        self.stdin = bool(flags & STDIN)
        self.fds = fds


class Zygote:
    def __init__(self, settings):
        self.link = socket.socket(fileno=settings["link"])
        self.tier = settings["tier"]
        self.namespaced = self.tier == "full"
        self.orphaned_by_parent = not self.namespaced
        self.folder = settings["folder"]
        self.seccomp = settings["seccomp"]
        self.processes = settings["processes"]
        self.call_filter = bytes.fromhex(settings["call_filter"])
        self.last_pid = -1
        self.baseline = 0
        self.highest = 0
        self.capabilities = Capabilities()
        self.poll = select.poll()
        self.poll.register(self.link, select.POLLIN)

    def confine(self, settings):
        """Enter the tier; whatever it promises and cannot have is an error."""
        with open("/proc/self/statm") as file:
            self.baseline = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
        needs = read_needs(ROOT_NEEDS + DEVICES + (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix) + STANDARD)
        if self.namespaced:
            self.last_pid = self.open_control("/proc/sys/kernel/ns_last_pid")
            self.forbid_namespaces()
            new_root(needs, self.folder, settings["pivot_root"])
            fresh_folder(self.folder)
        elif self.tier == "landlock":
            landlock(needs, self.folder)
        no_new_privileges()
        install_filter(bytes.fromhex(settings["filter"]), self.seccomp)

    def open_control(self, path):
        try:
            return os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return -1

    def forbid_namespaces(self):
        """Calls cannot make namespaces of their own; the setting holds for this user namespace."""
        control = self.open_control("/proc/sys/user/max_user_namespaces")
        if control >= 0:
            os.write(control, b"0")
            os.close(control)

    def say(self, text):
        self.link.send(text.encode("utf-8", "replace"))

    def receive(self):
        """Next message and its descriptors; the parent's end leaves with it."""
        fds = array.array("i")
        data, extra, _, _ = self.link.recvmsg(256, socket.CMSG_SPACE(8 * fds.itemsize), socket.MSG_CMSG_CLOEXEC)
        for level, kind, block in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(block[: len(block) - len(block) % fds.itemsize])
        if not data:
            os._exit(0)
        return data, list(fds)

    def serve(self):
        while True:
            data, fds = self.receive()
            if data[:1] == b"K":
                continue  # the call that it speaks of has ended
            job = Job(data, fds)
            self.reset_pids()
            pid = fork()
            if pid == 0:
                child(job, self)
            for fd in fds:
                os.close(fd)
            status, microseconds = self.attend(pid, job)
            self.sweep(pid)
            self.wipe()
            self.link.send(REPLY.pack(job.id, status, microseconds))

    def reset_pids(self):
        """Give every call the same process id, so that it tells nothing of earlier calls."""
        if self.last_pid >= 0:
            try:
                os.pwrite(self.last_pid, b"1", 0)
            except OSError:
                self.last_pid = -1

    def attend(self, pid, job):
        """Wait for the child; meanwhile obey an order to kill it, and end if the parent is gone."""
        watch = open_pidfd(pid, 0)
        self.poll.register(watch, select.POLLIN)
        while all(fd != watch for fd, _ in self.poll.poll()):
            data, _ = self.receive()
            if data[:1] == b"K" and REQUEST.unpack(data)[1] == job.id:
                os.kill(pid, signal.SIGKILL)
                break
        self.poll.unregister(watch)
        os.close(watch)
        _, status, usage = os.wait4(pid, 0)
        return status, int((usage.ru_utime + usage.ru_stime) * 1e6)

    def sweep(self, pid):
        """End what the call left behind. As init of its process namespace the zygote may kill
        everything else in it at once; elsewhere calls cannot fork, save in the weakest tier."""
        try:
            if self.namespaced:
                os.kill(-1, signal.SIGKILL)
            else:
                os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass
        try:
            while True:
                os.wait4(-1, 0)
        except ChildProcessError:
            pass

    def is_clean(self):
        try:
            return not os.listdir(self.folder) and os.stat(self.folder).st_mode == 0o40700 and not os.listxattr(self.folder)
        except OSError:
            return False

    def wipe(self):
        if self.is_clean():
            return
        if self.namespaced:
            unmount(self.folder)
            fresh_folder(self.folder)
            return
        os.chmod(self.folder, 0o700)
        empty(self.folder)


def empty(folder):
    """Remove what is in a folder. Subfolders are emptied by moving theirs up, so that neither
    depth nor permissions can stop it."""
    moved = 0
    while True:
        names = os.listdir(folder)
        if not names:
            return
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isdir(path):
                os.unlink(path)
                continue
            os.chmod(path, 0o700)
            for inner in os.scandir(path):
                if inner.is_dir(follow_symlinks=False):
                    os.chmod(inner.path, 0o700)  # a folder that moves must be writable
                    while os.path.lexists(os.path.join(folder, str(moved))):
                        moved += 1
                    os.rename(inner.path, os.path.join(folder, str(moved)))
                else:
                    os.unlink(inner.path)
            os.rmdir(path)


def warm():
    """Run the paths that every call takes, so that their pages are shared and not copied."""
    body, last = parse(b"x = 1\nx + 1")
    names = {}
    exec(body, names)
    repr(eval(last, names))
    try:
        1 // 0
    except ZeroDivisionError as error:
        "".join(traceback.TracebackException.from_exception(error).format())


def main(settings):
    zygote = Zygote(settings)
    try:
        zygote.confine(settings)
        zygote.highest = max(zygote.link.fileno(), zygote.last_pid) + 16
        os.environ.clear()
        sys.path[:] = [p for p in sys.path if p]
        sys.argv[:] = [FILE]
        warm()
    except Exception as error:
        zygote.say("error " + str(error))
        os._exit(1)
    random.seed(0)
    gc.collect()
    gc.disable()
    gc.freeze()
    zygote.say("ready " + ".".join(map(str, sys.version_info[:3])))
    zygote.serve()


main(json.loads(sys.argv.pop()))
