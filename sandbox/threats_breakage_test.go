package sandbox_test

import (
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// ownEnd lists the verdicts on a program that ends itself, or fails because it may not.
var ownEnd = []sandbox.Status{sandbox.StatusKilled, sandbox.StatusRuntime}

// spent ends a program that should have ended earlier, with an exit code of its own.
const spent = `
time.sleep(.2)
os._exit(3)`

// breakageThreats are programs that try to make their own failure count as the sandbox's. That would exclude their
// trajectory although it should be scored. Every row requires that the verdict is not breakage.
var breakageThreats = []threat{
	{name: "killing oneself", holds: sandbox.TierRlimits, ends: ownEnd, code: `os.kill(os.getpid(), 9)` + spent},
	{name: "killing oneself by a child", holds: sandbox.TierRlimits, ends: ownEnd, code: `mine = os.getpid()
if os.fork() == 0:
    os.setsid()
    os.kill(mine, 9)
    os._exit(0)` + spent},
	{name: "killing oneself by a thread id", holds: sandbox.TierRlimits, ends: ownEnd, code: `import threading
thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)
thread.start()
os.kill(thread.native_id, 9)` + spent},
	{name: "killing all processes but oneself, by a child", holds: sandbox.TierRlimits, ends: ownEnd,
		code: `if os.fork() == 0:
    os.kill(-1, 9)
    os._exit(0)` + spent},
	{name: "killing oneself by a child's exit signal", holds: sandbox.TierRlimits, ends: ownEnd,
		code: `pid = LIBC.syscall(ctypes.c_long(SYS["clone"]), ctypes.c_long(9), 0, 0, 0, 0)
if pid == 0: os._exit(0)` + spent},
	{name: "killing oneself by a timer", holds: sandbox.TierRlimits, code: `event = (ctypes.c_int * 16)(0, 0, 9, 0)
kernel("timer_create", 0, event, ctypes.byref(ctypes.c_int()))
through`},
	{name: "lowering one's own CPU limit", holds: sandbox.TierRlimits, ends: ownEnd, code: `import resource
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
end = time.process_time() + .3
while time.process_time() < end: pass` + spent},
	{name: "a flood of kills", holds: sandbox.TierRlimits, ends: append(anyTimeout, ownEnd...), limits: briefly,
		code: `while True:
    for target in range(3, 30000):
        try: os.kill(target, 9)
        except ProcessLookupError: pass`},
	{name: "all processes and descriptors", holds: sandbox.TierRlimits, ends: append(anyTimeout, wellOrNot...),
		limits: briefly,
		code: `while True:
    try: os.fork()
    except OSError: break
kept = []
while True:
    try: kept += os.pipe()
    except OSError: break
time.sleep(60)`},
	{name: "folders that resist the cleanup", holds: sandbox.TierRlimits, ends: wellOrNot, code: `for n in range(200):
    os.makedirs("%d/a/b" % n)
    open("%d/a/b/file" % n, "w").close()
    attempt("mode", os.chmod, "%d/a" % n, 0)
attempt("own", os.chmod, ".", 0)
os._exit(3)`},
	{name: "running on while the call is paused", holds: sandbox.TierRlimits, crowd: true,
		limits: sandbox.Limits{CPU: 20 * time.Second, Wall: 40 * time.Second, MemoryBytes: 128 << 20},
		code: `import mmap, struct
shared = mmap.mmap(-1, 16)  # when the parent was last seen to run, and whether the child ran on while it did not
try: child = os.fork()
except OSError: child = None
if child == 0:
    os.setsid()
    since = last = time.monotonic()
    seen = shared[:8]
    while True:
        now = time.monotonic()
        if shared[:8] != seen or now - last > .2: since, seen = now, shared[:8]  # it ran, or neither did
        if now - since > 1.2: shared[8] = 1
        last = now
end = time.monotonic() + 3
n = 0
while child and time.monotonic() < end:
    n += 1
    shared[:8] = struct.pack("q", n)
    time.sleep(.01)
[] if shared[8] == 0 else ["ran on"]`},
}
