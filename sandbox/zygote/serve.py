# Serving: the zygote's loop. One zygote runs one call at a time.

import array
import json
import mmap
import signal
import socket

# Modules that model-written code imports most often. They are loaded here, so importing them costs a call nothing.
import bisect, collections, copy, datetime, decimal, fractions, functools, heapq, itertools, math
import operator, re, statistics, string, time

REQUEST = struct.Struct("=QIIIQQII")  # id, flags, CPU seconds, processes, memory, file bytes, code bytes, extra bytes
REPLY = struct.Struct("=QiQQIccI")  # id, wait status, CPU microseconds, peak bytes, flags, started, record kind, length
# Flags of a request: which descriptors follow those of stdout and stderr, in this order. The file for the collected
# files comes last.
STDIN, FILES, CODE, COLLECT = 1, 2, 4, 8
NO_VALUE = 16  # the code's last statement has no value to show
CPU_LIMIT = 2  # flag of a reply: the kernel's CPU limit sent the signal that ended the call
WALL_CHILDREN = 0x40000000  # __WALL: wait for children of every kind
FAILED = 2  # exit code of a process for one task; lower codes are results


# The C library's fork, without Python's hooks. A process with one thread does not need them, and they would make each
# child copy some 150 pages (0.7 ms of 1.1) before its first line. PyDLL keeps the interpreter's lock during the fork.
plain_fork = ctypes.PyDLL(None).fork


def place_of_thread_id():
    """Return the address where the C library keeps this thread's id, or 0 if it is unknown.

    The kernel knows the address, since it clears it when the thread ends. If the kernel does not tell, search for the
    id; the result must be unique.
    """
    PR_GET_TID_ADDRESS = 40
    own, libc = threading.get_native_id(), ctypes.CDLL(None)
    place = ctypes.c_void_p()
    if libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(place), 0, 0, 0) == 0 and place.value:
        return place.value if ctypes.c_int.from_address(place.value).value == own else 0
    libc.pthread_self.restype = ctypes.c_void_p
    words = (ctypes.c_int * 512).from_address(libc.pthread_self())
    found = [i for i, word in enumerate(words) if word == own]
    return ctypes.addressof(words) + 4 * found[0] if len(found) == 1 else 0


def make_fork():
    """Return a fork function that blocks this process until the child has given up its memory.

    While both run, every page that the zygote writes is copied first, and its huge pages are split for
    good. The kernel's vfork flag stops the parent; without the flag for shared memory the call is
    otherwise an ordinary fork. The C library's own fork does one thing more for a process with one
    thread: it tells the child its thread id.
    """
    tid = place_of_thread_id()
    if not tid or os.uname().machine not in ("x86_64", "aarch64"):
        return plain_fork
    number = 56 if os.uname().machine == "x86_64" else 220
    CLONE_VFORK, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, SIGCHLD = 0x4000, 0x200000, 0x1000000, 17
    flags = CLONE_VFORK | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD
    words = [ctypes.c_long(n) for n in (number, flags, 0, 0)]
    # The order of the last two arguments differs between the architectures.
    words += [ctypes.c_long(n) for n in ((tid, 0) if number == 56 else (0, tid))]
    call = ctypes.PyDLL(None).syscall
    return lambda: call(*words)


# A large allocation makes the C library merge freed memory. Otherwise each child would do so, and copy a hundred pages.
LARGE = ctypes.c_size_t(32 << 10)
allocate, release = LIBC.malloc, LIBC.free
allocate.restype, release.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)


def ended_by_cpu_limit(ended, pid, soft):
    """Return whether the kernel's CPU limit sent the signal that ended a process, which must not be reaped yet. soft is
    the limit that the process was given. The code may have lowered it.

    The kernel raises a soft limit when it sends SIGXCPU. For the SIGKILL of a hard limit, this reads the clock by which
    the kernel measures, in ticks.
    """
    by_signal = ended.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
    if not by_signal or ended.si_status not in (signal.SIGKILL, signal.SIGXCPU):
        return False
    try:
        now, most = resource.prlimit(pid, resource.RLIMIT_CPU)
        if ended.si_status == signal.SIGXCPU:
            return now != soft
        return most != resource.RLIM_INFINITY and time.clock_gettime(~pid << 3) >= most - 0.02
    except OSError:
        return True  # unknown; code must not profit from that


class Job:
    """One call. The zygote knows only its numbers and descriptors. Code and names stay in the link until the child
    takes them, because later calls get copies of the zygote's memory."""

    __slots__ = ("id", "flags", "cpu", "processes", "memory", "file", "size", "more", "code", "extra", "fds")

    def __init__(self, head, fds):
        (self.id, self.flags, self.cpu, self.processes, self.memory, self.file,
         self.size, self.more) = REQUEST.unpack(head)
        self.fds = fds

    def take(self, link):
        """Read the whole request from the link. Only the child does this."""
        length = REQUEST.size + self.size + self.more
        packet = os.read(link, length)
        if len(packet) != length:
            raise EOFError("the request ends early")
        BEGUN[1] = 1
        end = REQUEST.size + self.size
        self.code = packet[REQUEST.size : end]
        self.extra = json.loads(packet[end:]) if self.more else {}

    def descriptor(self, flag):
        """Return the descriptor that belongs to a flag, or −1."""
        if not self.flags & flag:
            return -1
        return self.fds[2 + bin(self.flags & (flag - 1)).count("1")]


class Zygote:
    head = REQUEST  # what the zygote reads of a request

    def __init__(self, settings):
        self.link = socket.socket(fileno=settings["link"])
        self.tier = settings["tier"]
        self.namespaced = self.tier == "full"
        self.orphaned_by_parent = not self.namespaced
        self.folder = settings["folder"]
        self.visible = settings["visible"]
        self.seccomp = settings["seccomp"]
        self.statx = settings["statx"]
        self.processes = settings["processes"]
        self.call_filter = bytes.fromhex(settings["call_filter"])
        self.kill_filter = bytes.fromhex(settings["kill_filter"])
        self.last_pid = -1
        self.baseline = 0
        self.highest = 0
        self.capabilities = Capabilities()
        self.fork = make_fork()
        self.packet = memoryview(bytearray(self.head.size))
        self.space = socket.CMSG_SPACE(8 * array.array("i").itemsize)

    def confine(self, settings):
        """Enter the tier. If the tier promises something that does not work here, raise an error."""
        with open("/proc/self/statm") as file:
            self.baseline = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
        prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
        needs = read_needs(ROOT_NEEDS + DEVICES + prefixes + STANDARD + tuple(self.visible))
        if self.namespaced:
            self.last_pid = self.open_control("/proc/sys/kernel/ns_last_pid")
            self.forbid_namespaces()
            new_root(needs, self.folder, settings["pivot_root"])
            fresh_folder(self.folder)
            rename_host()
        elif self.tier == "landlock":
            landlock(needs, self.folder)
        no_new_privileges()
        self.report_kills()
        install_filter(bytes.fromhex(settings["filter"]), self.seccomp)
        os.umask(0o077)
        os.chdir(self.folder)
        self.set_lasting_limits()

    def set_lasting_limits(self):
        set_lasting_limits(self)

    def open_control(self, path):
        try:
            return os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return -1

    def forbid_namespaces(self):
        """Forbid calls to create namespaces. The setting applies to this user namespace."""
        control = self.open_control("/proc/sys/user/max_user_namespaces")
        if control >= 0:
            os.write(control, b"0")
            os.close(control)

    def report_kills(self):
        """Send the parent the listener for the calls' kills. Once the filter is loaded, descriptors cannot be sent."""
        listener = install_kill_filter(self.kill_filter, self.seccomp)
        if listener >= 0:
            self.link.sendmsg([b"kills"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
            os.close(listener)

    def say(self, text):
        self.link.send(text.encode("utf-8", "replace"))

    def receive(self, flags=0):
        """Read the head of the next packet and return its descriptors. If the parent has ended, exit."""
        fds = array.array("i")
        size, extra, _, _ = self.link.recvmsg_into((self.packet,), self.space, socket.MSG_CMSG_CLOEXEC | flags)
        for level, kind, block in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(block[: len(block) - len(block) % fds.itemsize])
        if not size:
            os._exit(0)
        return fds

    def serve(self):
        fork = self.fork
        self.state = FolderState(self.folder, self.namespaced, self.statx)
        self.seen, self.untouched = self.state.buffer(), self.state.buffer()
        self.remember_folder()
        while True:
            fds = self.receive(socket.MSG_PEEK)
            job = Job(self.packet, fds)
            self.reset_pids()
            pid = fork()
            if pid == 0:
                child(job, self)
            if pid < 0:
                os._exit(1)
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            flags = CPU_LIMIT if ended_by_cpu_limit(ended, pid, job.cpu) else 0
            _, status, usage = os.wait4(pid, 0)
            self.sweep(pid)
            if not BEGUN[1]:
                self.skip_request()
            self.answer(job, status, usage, flags)
            # Close only now, so that the ends of the pipes arrive after the reply and do not wake up the parent before
            # it.
            for fd in fds:
                os.close(fd)
            self.wipe()
            release(allocate(LARGE))

    def reset_pids(self):
        """Give every call the same process id, so that the id reveals nothing about earlier calls."""
        if self.last_pid >= 0:
            try:
                os.pwrite(self.last_pid, b"1", 0)
            except OSError:
                self.last_pid = -1

    def skip_request(self):
        """Drop the request of a child that ended before it took it. The first byte is part of a number."""
        try:
            self.link.recv_into(self.packet, 1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass  # it was taken

    def answer(self, job, status, usage, flags):
        kind, length = BOARD_HEAD.unpack_from(BOARD)
        length = min(length, BOARD_SIZE)
        if job.flags & COLLECT:
            flags |= self.apart(lambda: collect(self.folder, job.descriptor(COLLECT), job.fds[-1]))
        cpu = int((usage.ru_utime + usage.ru_stime) * 1e6)
        head = REPLY.pack(job.id, status, cpu, usage.ru_maxrss << 10, flags, BEGUN[:1], kind, length)
        os.writev(self.link.fileno(), (head, RECORD[:length]))  # without a copy in this process
        clear_board()  # the next call must not see this one's record
        BEGUN[:2] = bytes(2)

    def apart(self, act):
        """Run act in a process of its own and return its result, a small number. What act learns about the call is
        gone with that process. The parent may kill it together with the call; then act is run again."""
        while True:
            pid = self.fork()
            if pid == 0:
                code = FAILED
                try:
                    code = act()
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            if pid < 0:
                os._exit(1)
            _, status = os.waitpid(pid, 0)
            if not os.WIFEXITED(status):
                continue
            if os.WEXITSTATUS(status) >= FAILED:
                os._exit(1)
            return os.WEXITSTATUS(status)

    def sweep(self, pid):
        """Kill the processes that the call left behind. As init of its process namespace the zygote can kill
        all other processes in it at once; in the other tiers calls cannot fork."""
        try:
            if self.namespaced:
                # By now every process that the call left is a child of init. Most calls leave none, and a kill would be
                # reported.
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | WALL_CHILDREN)
                os.kill(-1, signal.SIGKILL)
            else:
                os.killpg(pid, signal.SIGKILL)
        except ChildProcessError:
            return
        except OSError:
            pass
        try:
            while True:
                os.wait4(-1, 0)
        except ChildProcessError:
            pass

    def remember_folder(self):
        """Set the times of the empty folder, so that calls cannot tell when it was emptied, and remember its state.
        The kernel does not update a time of access that lies in the future (relatime) when a call lists the folder."""
        os.utime(self.folder, (1 << 32, 0))
        self.state.look(self.untouched)

    def wipe(self):
        self.state.look(self.seen)
        if self.state.equal(self.seen, self.untouched):
            return
        if self.namespaced:
            os.chdir("/")
            unmount(self.folder)
            fresh_folder(self.folder)
            os.chdir(self.folder)
        else:
            self.apart(lambda: empty(self.folder))
        self.remember_folder()


def warm(own):
    """Run the code paths that every call uses, so that their pages are shared and not copied; then the
    package set's own warm-up."""
    body, last = parse(b"x = 1\nx + 1")
    names = {}
    exec(body, names)
    repr(eval(last, names))
    try:
        1 // 0
    except ZeroDivisionError as error:
        "".join(traceback.TracebackException.from_exception(error).format())
    exec(compile(own, "<warm-up>", "exec"), {"__name__": "warm-up"})


def gather_pages():
    """Ask the kernel to back the interpreter's memory with huge pages. A fork then copies one
    page table entry instead of 512. This is an optimisation and may fail."""
    MADV_HUGEPAGE, MADV_COLLAPSE, HUGE = 14, 25, 2 << 20
    LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with open("/proc/self/maps") as file:
        lines = file.read().split("\n")
    for line in lines:
        fields = line.split(None, 5)
        if len(fields) < 5 or not fields[1].startswith("rw") or (len(fields) == 6 and fields[5] != "[heap]"):
            continue
        low, high = (int(end, 16) for end in fields[0].split("-"))
        low, high = -(-low // HUGE) * HUGE, high // HUGE * HUGE
        if high > low and LIBC.madvise(low, high - low, MADV_HUGEPAGE) == 0:
            LIBC.madvise(low, high - low, MADV_COLLAPSE)


def main(settings, kind):
    # Calls must not get descriptors that the parent itself inherited without knowing.
    os.closerange(settings["link"] + 1, os.sysconf("SC_OPEN_MAX"))
    zygote = kind(settings)
    # Whatever the worker was told to ignore, as nohup does with SIGHUP, works as usual in calls. Python ignores two.
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    # The init of a process namespace ignores signals from calls, except those that it has a handler for. Calls inherit
    # this: Python believes that it handles SIGINT, and the kernel ends a process that gets one from outside. So the
    # parent can tell that the code was not to blame, whatever the code does with a KeyboardInterrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    LIBC.signal(signal.SIGINT, None)
    try:
        sys.path[:] = [p for p in sys.path if p] + settings["path"]
        warm(settings["warm"])
        gather_pages()
        zygote.confine(settings)
        zygote.highest = max(zygote.link.fileno(), zygote.last_pid) + 16
        os.environ.clear()
        sys.argv[:] = [FILE]
    except Exception as error:
        zygote.say("error %s: %s" % (type(error).__name__, error))
        os._exit(1)
    random.seed(0)
    gc.collect()
    gc.disable()
    gc.freeze()
    zygote.say("ready " + ".".join(map(str, sys.version_info[:3])))
    zygote.serve()
