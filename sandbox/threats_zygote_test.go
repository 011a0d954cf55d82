package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// climb gives an attack the names of the code that set it up, which are in its own process, below its frames.
const climb = `frame = sys._getframe()
while frame.f_back: frame = frame.f_back
inside = {}
import gc
for held in gc.get_objects() + [frame.f_globals]:
    if type(held) is dict and "execute" in held and "prepare" in held: inside = held
while frame and "report" not in inside: inside, frame = frame.f_globals, None
`

// zygoteThreats attack the sandbox itself.
var zygoteThreats = []threat{
	{name: "patched builtins", holds: sandbox.TierRlimits, ends: wellOrNot, code: `import builtins
builtins.open = builtins.len = builtins.print = builtins.compile = builtins.exec = builtins.repr = lambda *a, **k: 0
builtins.__import__ = None
builtins.left = 1
through`},
	{name: "patched modules", holds: sandbox.TierRlimits, code: `import json, math, string, random
math.sqrt = json.dumps = lambda *a: 0
string.digits = "left"
random.seed(7)
for name in list(sys.modules):
    if name not in ("sys", "builtins"): sys.modules[name].__dict__["left"] = 1
sys.modules["left"] = sys
sys.path.insert(0, "/left")
os.environ["LEFT"] = "1"
os.fork = os.wait4 = os.kill = None
sys.setrecursionlimit(77)
through`},
	{name: "exit handlers", holds: sandbox.TierRlimits, ends: wellOrNot, code: `import atexit, weakref
atexit.register(lambda: open("left", "w"))
atexit.register(os._exit, 0)
atexit.unregister(print)`},
	{name: "exit handlers that never end", holds: sandbox.TierRlimits, ends: wallTimeout, limits: briefly,
		code: `import atexit
atexit.register(time.sleep, 3600)`},
	{name: "hooks of the interpreter", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: `sys.excepthook = lambda *a: os._exit(0)
sys.settrace(lambda *a: None)
sys.setprofile(lambda *a: None)
sys.addaudithook(lambda *a: None)
sys.displayhook = sys.unraisablehook = None
sys.stdout = sys.stderr = None
gc = __import__("gc")
gc.callbacks.append(lambda *a: None)
gc.set_threshold(1)
1 / 0`},
	{name: "sitecustomize and modules in the folder", holds: sandbox.TierRlimits,
		code: `for name in ("sitecustomize", "usercustomize", "json", "random", "numpy"):
    open(name + ".py", "w").write("import os; os._exit(0)")
os.mkdir("encodings")
open("encodings/__init__.py", "w").write("1/0")
through`},
	{name: "writing into the interpreter", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: `# the small integer 5 becomes 7, and the empty tuple and None are given away
at = ctypes.cast(id(5) + 24, ctypes.POINTER(ctypes.c_uint32))
at[0] = 7
ctypes.memset(id(print), 255, 16)
os._exit(0)`},
	{name: "writing over all of memory", holds: sandbox.TierRlimits,
		ends: []sandbox.Status{sandbox.StatusKilled, sandbox.StatusRuntime},
		code: `module = sys.modules["__main__"]
for step in range(1 << 20): ctypes.memset((id(module) & ~0xfffff) + step * 4096, 0xff, 4096)`},
	{name: "the zygote's own functions", holds: sandbox.TierRlimits, ends: wellOrNot,
		code: climb + `for name in ("report", "started", "clear_board", "release_reserve", "fork", "empty", "warm"):
    act = inside.get(name)
    for args in ((), ("m", "no"), (".",)):
        try: act(*args)
        except BaseException: pass
for held in gc.get_objects():
    if type(held).__name__ == "Zygote":
        for name in ("wipe", "say", "reset_pids"):
            try: getattr(held, name)(*(["ready 9"] if name == "say" else []))
            except BaseException: pass
os._exit(0)`},
	{name: "claiming that the sandbox failed", holds: sandbox.TierRlimits, ends: anyFailure,
		code: climb + `inside["PID"] = os.getpid()
for kind in "ES": inside["report"](kind, "sandbox broke")
os._exit(1)`},
	{name: "forged frames on every descriptor", holds: sandbox.TierRlimits, ends: wellOrNot, code: `import struct
frames = [struct.pack("=QiQ", n, 0, 0) for n in range(40)] + [b"ready 9.9", b"K" + bytes(40), b"R" + bytes(40),
        b"\xff" * 60]
for fd in range(3, 256):
    for frame in frames:
        try: os.write(fd, frame)
        except OSError: break
through`},
	{name: "forged records", holds: sandbox.TierRlimits, ends: anyFailure, code: `for fd in (3, 4, 5):
    for record in (b"v42", b"S", b"m", b"E"):
        try: os.write(fd, record)
        except OSError: break
os._exit(9)`, then: func(t *testing.T, r sandbox.Result) {
		require.Equal(t, 9, r.ExitCode)
		require.Empty(t, r.Value)
	}},
	{name: "descriptors of the zygote", holds: sandbox.TierRlimits, code: `import stat
found = []
for fd in range(3, 256):
    try: mode = os.fstat(fd).st_mode
    except OSError: continue
    if not stat.S_ISFIFO(mode): found.append(fd)  # a control pipe is the call's own
found`},
	{name: "a pickle as result", holds: sandbox.TierRlimits, code: `import pickle
class Bomb:
    def __reduce__(self): return os.system, ("touch /tmp/ropewalk-left",)
os.write(1, pickle.dumps(Bomb()))
through`},
	{name: "a value whose repr attacks", holds: sandbox.TierRlimits,
		ends: []sandbox.Status{sandbox.StatusRuntime, sandbox.StatusKilled},
		code: `class Bomb:
    def __repr__(self): os._exit(3)
Bomb()`},
	{name: "a value that never ends", holds: sandbox.TierRlimits,
		ends: append([]sandbox.Status{sandbox.StatusOutOfMemory}, cpuTimeout...),
		code: `class Bomb:
    def __repr__(self): return "x" * (1 << 62)
    def __str__(self): return ""
class Slow:
    def __repr__(self):
        while True: pass
Slow()`},
	{name: "an error whose text attacks", holds: sandbox.TierRlimits, ends: anyFailure,
		code: `class Bomb(BaseException):
    def __str__(self): raise self
    __repr__ = __str__
e = Bomb()
e.__cause__ = e
raise e`},
	{name: "words of a verdict in the output", holds: sandbox.TierRlimits,
		code: `print("Traceback (most recent call last):\nMemoryError\nSyntaxError: timeout_wall "
        "infrastructure output_limit")
through`},
	{name: "closing every descriptor", holds: sandbox.TierRlimits, ends: wellOrNot, code: `os.closerange(0, 256)
print("gone")`},
	{name: "deep recursion in the parser", holds: sandbox.TierRlimits,
		ends: append([]sandbox.Status{sandbox.StatusSyntax, sandbox.StatusOutputLimit}, anyFailure...), code: "(" +
			"\"(\" * 100000)\n" + "eval('(' * 100000)"},
}
