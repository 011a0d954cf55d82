# The child: one call. It is forked from the zygote, confines itself further and runs the code.
# What it reports on the control pipe is a description; the verdict is the exit status, which
# the zygote takes from wait.

import _ast
import _thread
import ast
import atexit
import builtins
import gc
import linecache
import random
import resource
import threading
import traceback
import types

CONTROL = 3  # the control pipe's descriptor in a child
FILE = "main.py"
CALLBACKS = atexit._ncallbacks()  # the warm modules' own; calls need not run them
PID = 0  # of the child, set by it
RESERVE = 32 << 20  # bytes of address space kept back for reporting a MemoryError
STANDARD = (os.path.dirname(os.__file__), os.path.dirname(os.path.realpath(os.__file__)))


def limit(kind, soft, hard=None):
    resource.setrlimit(kind, (soft, soft if hard is None else hard))


def set_limits(job, zygote):
    limit(resource.RLIMIT_CPU, job.cpu, job.cpu + 1)
    limit(resource.RLIMIT_FSIZE, 16 << 20)
    limit(resource.RLIMIT_NOFILE, 64)
    limit(resource.RLIMIT_CORE, 0)
    if zygote.processes > 0:
        limit(resource.RLIMIT_NPROC, zygote.processes)
    # The interpreter's own pages come on top, so that a limit means the same for every Python.
    most = zygote.baseline + job.memory
    limit(resource.RLIMIT_AS, most, most + RESERVE)


def release_reserve():
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def report(kind, text=""):
    """Send one record: a letter, then text. Copies that the code forked of itself send none."""
    if os.getpid() != PID:
        return
    data = (kind + text).encode("utf-8", "backslashreplace")
    try:
        while data:
            data = data[os.write(CONTROL, data):]
    except OSError:
        pass


def ends_quietly(source):
    """A final semicolon hides the value, as in a notebook."""
    return source.rstrip().endswith(b";")


def parse(source):
    """Return the program's body and, if its last statement is an expression, that one apart."""
    tree = compile(source, FILE, "exec", _ast.PyCF_ONLY_AST, True)
    last = None
    if tree.body and type(tree.body[-1]) is ast.Expr and not ends_quietly(source):
        last = compile(ast.Expression(tree.body.pop().value), FILE, "eval", 0, True)
    return compile(tree, FILE, "exec", 0, True), last


def main_module(source, folder):
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __file__=FILE)
    sys.modules["__main__"] = module
    sys.argv[:] = [FILE]
    sys.path.insert(0, folder)
    lines = source.decode("utf-8", "replace").splitlines(True)
    linecache.cache[FILE] = (len(source), None, lines, FILE)
    return module.__dict__


def add_line(error):
    """Give a syntax error found after parsing the line that it speaks of."""
    if isinstance(error, SyntaxError) and error.text is None and error.lineno:
        error.text = linecache.getline(FILE, error.lineno) or None


def is_users(frame):
    name = frame.filename
    return not (name.startswith(STANDARD) or name.startswith("<frozen ") or name == "<zygote>")


def keep_user_frames(trace, seen):
    if trace is None or id(trace) in seen:
        return
    seen.add(id(trace))
    trace.stack[:] = [frame for frame in trace.stack if is_users(frame)]
    keep_user_frames(trace.__cause__, seen)
    keep_user_frames(trace.__context__, seen)
    for inner in getattr(trace, "exceptions", None) or ():
        keep_user_frames(inner, seen)


def print_error(error):
    """Print the traceback as Python does, without the frames of zygote and standard library."""
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, error.__traceback__)
        return
    trace = traceback.TracebackException.from_exception(error)
    keep_user_frames(trace, set())
    text = "".join(trace.format())
    if not trace.stack:
        text = text.replace("Traceback (most recent call last):\n", "", 1)
    sys.stderr.write(text)


def failed(error, kind="r"):
    if isinstance(error, MemoryError):
        kind = "m"
        release_reserve()
    report(kind)
    try:
        print_error(error)
    except BaseException:
        pass
    return 1


def exit_code(error):
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def execute(source, folder):
    """Run the program and return its exit code, as the interpreter itself would."""
    try:
        body, last = parse(source)
    except BaseException as error:
        main_module(source, folder)
        add_line(error)
        return failed(error, "s")
    names = main_module(source, folder)
    try:
        exec(body, names)
        value = None if last is None else eval(last, names)
        if value is not None:
            report("v", repr(value))
    except SystemExit as error:
        return exit_code(error)
    except BaseException as error:
        return failed(error)
    return 0


def finish(code):
    """What the interpreter does at its end, save for taking itself apart."""
    try:
        if _thread._count():
            threading._shutdown()
        if atexit._ncallbacks() != CALLBACKS:
            atexit._run_exitfuncs()
    except BaseException:
        pass
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            code = code or 120  # Python's own code for output that could not be flushed
    return code


def read_all(fd, size):
    source = os.read(fd, size)
    while len(source) < size:  # one read returns at most 2 GiB
        more = os.read(fd, size - len(source))
        if not more:
            raise EOFError("code ends early")
        source += more
    return source


def prepare(job, zygote):
    """Take the descriptors' places, set limits, give up what is left of privilege."""
    os.setsid()
    if zygote.orphaned_by_parent:
        LIBC.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)
    source = read_all(job.fds[0], job.size)
    if job.stdin:
        os.dup2(job.fds[4], 0)
    os.dup2(job.fds[1], 1)
    os.dup2(job.fds[2], 2)
    os.closerange(CONTROL + 1, zygote.highest)
    os.chdir(zygote.folder)
    os.umask(0o077)
    if zygote.namespaced:
        zygote.capabilities.drop()
    install_filter(zygote.call_filter, zygote.seccomp)
    set_limits(job, zygote)
    gc.enable()
    return source


def child(job, zygote):
    global PID
    PID = os.getpid()
    try:
        os.dup2(job.fds[3], CONTROL, False)
        source = prepare(job, zygote)
        report("S")
    except BaseException as error:
        report("E", "%s: %s" % (type(error).__name__, error))
        os._exit(1)
    code = 1
    try:
        code = finish(execute(source, zygote.folder))
    finally:
        os._exit(code)
