package sandbox_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

var (
	anyTimeout  = []sandbox.Status{sandbox.StatusTimeoutCPU, sandbox.StatusTimeoutWall}
	cpuTimeout  = []sandbox.Status{sandbox.StatusTimeoutCPU}
	wallTimeout = []sandbox.Status{sandbox.StatusTimeoutWall}
	anyFailure  = []sandbox.Status{sandbox.StatusRuntime, sandbox.StatusFileLimit, sandbox.StatusProcessLimit,
		sandbox.StatusOutOfMemory, sandbox.StatusKilled}
	wellOrNot = append([]sandbox.Status{sandbox.StatusOK}, anyFailure...)
	tooMuch   = []sandbox.Status{sandbox.StatusOutputLimit}
	noMemory  = []sandbox.Status{sandbox.StatusOutOfMemory}
)

// resourceThreats try to use up resources.
var resourceThreats = []threat{
	{name: "endless loop", holds: sandbox.TierRlimits, ends: cpuTimeout, code: `while True: pass`},
	{name: "endless loop in C", holds: sandbox.TierRlimits, ends: cpuTimeout, code: `import re
re.match("(a*)*b", "a" * 64)`},
	{name: "endless loop that ignores its limit", holds: sandbox.TierRlimits, ends: cpuTimeout,
		code: `signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True: pass`},
	{name: "sleep", holds: sandbox.TierRlimits, ends: wallTimeout, limits: briefly, code: `time.sleep(3600)`},
	{name: "ignoring every signal", holds: sandbox.TierRlimits, ends: wallTimeout, limits: briefly,
		code: `for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: time.sleep(60)`},
	{name: "stopping oneself", holds: sandbox.TierRlimits, ends: append(anyFailure, wallTimeout...), limits: briefly,
		code: `os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(60)`},
	{name: "fork bomb", holds: sandbox.TierRlimits, ends: anyTimeout, limits: briefly, code: `while True:
    try: os.fork()
    except OSError: pass`},
	{name: "fork bomb of daemons", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: `signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(200):
    try:
        if os.fork() == 0:
            os.setsid()
            while True:
                try:
                    os.fork()
                except OSError: pass
    except OSError: pass
os._exit(0)`},
	{name: "processes beyond the limit", holds: sandbox.TierRlimits, code: `n = 0
try:
    while n < 64:
        if os.fork() == 0: time.sleep(60)
        n += 1
except OSError: pass
[n] if n > 32 else []`},
	{name: "thread bomb", holds: sandbox.TierRlimits, ends: append(anyTimeout, wellOrNot...), limits: briefly,
		code: `import threading
threading.stack_size(32768)
while True:
    try: threading.Thread(target=time.sleep, args=(60,)).start()
    except RuntimeError: break
os._exit(0)`},
	{name: "memory bomb", holds: sandbox.TierRlimits, ends: noMemory, code: `a = []
while True: a.append("x" * 100000)`},
	{name: "one huge object", holds: sandbox.TierRlimits, ends: noMemory, code: `bytearray(10 ** 12)`},
	{name: "memory by mmap", holds: sandbox.TierRlimits, code: `import mmap
kept = []
for shared in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
    for _ in range(64):
        try: kept.append(mmap.mmap(-1, 16 << 20, shared | mmap.MAP_ANONYMOUS))
        except (OSError, MemoryError): break
[len(kept)] if len(kept) > 12 else []`},
	{name: "memory in unnamed files", holds: sandbox.TierRlimits,
		code: `for _ in range(8): kernel("memfd_create", b"a", 0)
kernel("memfd_secret", 0)
through`},
	{name: "locked memory", holds: sandbox.TierRlimits, code: `kernel("mlockall", 3)
through`},
	{name: "stack overflow", holds: sandbox.TierRlimits, ends: anyFailure, code: `sys.setrecursionlimit(10 ** 9)
def f(): return [*map(lambda _: f(), [1])]
f()`},
	{name: "one large file", holds: sandbox.TierRlimits, ends: anyFailure, code: `with open("big", "wb") as f:
    while True: f.write(bytes(1 << 20))`},
	{name: "sparse file", holds: sandbox.TierRlimits, ends: anyFailure,
		code: `os.truncate(os.open("sparse", os.O_CREAT | os.O_RDWR), 1 << 50)`},
	{name: "disk fill by many files", holds: sandbox.TierFull, ends: anyFailure,
		code: `for i in range(64): open(str(i), "wb").write(bytes(1 << 20))`},
	{name: "inode fill", holds: sandbox.TierFull, ends: anyFailure,
		code: `for i in range(5000): open(str(i), "w").close()`},
	{name: "inode fill by links", holds: sandbox.TierFull, ends: anyFailure,
		code: `for i in range(5000): os.symlink("x", str(i))`},
	{name: "deep folder tree", holds: sandbox.TierRlimits, ends: wellOrNot, code: `for i in range(900):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)`},
	{name: "odd file names", holds: sandbox.TierRlimits,
		code: `for name in (b"\n", b"-rf", b"\xff\xfe", b"a" * 255, b"*", b" ", b"\x1b[2J", b"..."):
    os.mkdir(name)
    open(os.path.join(name, name), "w").close()
through`},
	{name: "files without permissions", holds: sandbox.TierRlimits, code: `os.mkdir("locked", 0)
os.mkfifo("pipe", 0)
os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0))
through`},
	{name: "descriptors without end", holds: sandbox.TierRlimits, code: `kept = []
try:
    while True: kept += os.pipe()
except OSError: pass
[len(kept)] if len(kept) > 64 else []`},
	{name: "huge output", holds: sandbox.TierRlimits, ends: tooMuch, code: `sys.stdout.write("x" * (16 << 20))`},
	{name: "endless output", holds: sandbox.TierRlimits, ends: tooMuch, code: `while True: print("abcdefg")`},
	{name: "endless output on stderr", holds: sandbox.TierRlimits, ends: tooMuch,
		code: `while True: os.write(2, b"x" * 4096)`},
	{name: "endless output by a child", holds: sandbox.TierRlimits, ends: append(anyFailure, tooMuch...),
		code: `if os.fork() == 0:
    while True: os.write(1, b"x" * 4096)
time.sleep(60)`},
	{name: "binary output", holds: sandbox.TierRlimits, code: `os.write(1, bytes(range(256)))
through`, then: func(t *testing.T, r sandbox.Result) {
		require.Equal(t, string(rune(0)), r.Stdout[:1])
		require.Equal(t, strings.ToValidUTF8(r.Stdout, ""), r.Stdout)
	}},
	{name: "stdin flood", holds: sandbox.TierRlimits, stdin: strings.Repeat("flood", 3<<20), code: `through`},
	{name: "stdin flood, read", holds: sandbox.TierRlimits, stdin: strings.Repeat("flood", 2<<20), code: `n = 0
while True:
    part = os.read(0, 1 << 16)
    if not part: break
    n += len(part)
[] if n == 5 * (2 << 20) else [n]`},
	{name: "non-daemon thread that never ends", holds: sandbox.TierRlimits, ends: wallTimeout, limits: briefly,
		code: `import threading
threading.Thread(target=time.sleep, args=(3600,)).start()`},
	{name: "instances counted for the whole user or machine", holds: sandbox.TierRlimits,
		code: `kernel("inotify_init1", 0)
kernel("fanotify_init", 0, 0)
kernel("io_setup", 1024, ctypes.byref(ctypes.c_ulong()))
through`},
	{name: "flushing the machine's disks", holds: sandbox.TierRlimits, code: `kernel("sync")
through`},
	{name: "core dump", holds: sandbox.TierRlimits, ends: []sandbox.Status{sandbox.StatusKilled}, code: `import resource
assert resource.getrlimit(resource.RLIMIT_CORE) == (1, 1)
ctypes.string_at(0)`},
	{name: "raised priority", holds: sandbox.TierRlimits, code: `import resource
attempt("nice", os.nice, -5)
attempt("fifo", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
attempt("rtprio", resource.setrlimit, resource.RLIMIT_RTPRIO, (9, 9))
attempt("rtnice", resource.setrlimit, resource.RLIMIT_NICE, (40, 40))
kernel("ioprio_set", 1, 0, 1 << 13)
kernel("sched_setattr", 0, ctypes.create_string_buffer(bytes([48, 0, 0, 0, 6, 0, 0, 0]) + bytes(40)), 0)
through`},
	{name: "raised limits", holds: sandbox.TierRlimits, code: `import resource
for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE,
        resource.RLIMIT_CORE):
    attempt(str(kind), resource.setrlimit, kind, (1 << 40, 1 << 40))
through`},
	{name: "lowered priority, class, CPUs", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: `os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.nice(19)`},
}
