# The child: one call. It is forked from the zygote, confines itself further and runs the code. It writes a description
# of the result on the *board*, which is memory that it shares with the zygote. The verdict is the exit status, which
# the zygote takes from wait.

import _ast
import _thread
import ast
import atexit
import builtins
import errno
import gc
import linecache
import mmap
import random
import resource
import signal
import threading
import traceback
import types

BOARD_HEAD = struct.Struct("=cxxxI")  # kind of record, its length in bytes
BOARD_SIZE = 64 << 10  # bytes of a record
BOARD = mmap.mmap(-1, BOARD_HEAD.size + BOARD_SIZE)
BOARD_AT = ctypes.addressof(ctypes.c_char.from_buffer(BOARD))
RECORD = memoryview(BOARD)[BOARD_HEAD.size :]
# Whether the code has begun, and whether the child has taken its request. A child gives this memory up, so that the
# code cannot reset it and disguise its own failure as the sandbox's.
BEGUN = mmap.mmap(-1, mmap.PAGESIZE)
FILE = "main.py"
CALLBACKS = atexit._ncallbacks()  # those of the loaded modules; calls need not run them
PID = 0  # the child's own id, which it sets
MOST_FILE = 16 << 20  # bytes; the size of the work folder
RESERVE = 32 << 20  # bytes of address space reserved for reporting a MemoryError
# Signals that may wait for a call. The kernel counts them in the user namespace of the zygote or session, and bounds
# the sum over all namespaces of the user by the user's own limit.
MOST_SIGNALS = 128
STANDARD = (os.path.dirname(os.__file__), os.path.dirname(os.path.realpath(os.__file__)))


def limit(kind, soft, hard=None):
    resource.setrlimit(kind, (soft, soft if hard is None else hard))


def set_lasting_limits(zygote):
    """Set the limits that every child inherits from the zygote."""
    limit(resource.RLIMIT_NOFILE, 64)
    # No dump. With 0 the host would still start a handler if it pipes dumps to one; a service manager may demand 0.
    limit(resource.RLIMIT_CORE, 0 if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 else 1)
    limit(resource.RLIMIT_FSIZE, MOST_FILE)
    if zygote.processes > 0:
        limit(resource.RLIMIT_NPROC, zygote.processes)
    if zygote.namespaced:
        limit(resource.RLIMIT_SIGPENDING, MOST_SIGNALS)


def set_limits(job, zygote):
    limit(resource.RLIMIT_CPU, job.cpu, job.cpu + 1)
    if job.file < MOST_FILE:
        limit(resource.RLIMIT_FSIZE, job.file)
    if job.processes + 1 < zygote.processes:
        limit(resource.RLIMIT_NPROC, job.processes + 1)
    # The interpreter's own pages are added, so that a limit means the same for every Python.
    most = zygote.baseline + job.memory
    limit(resource.RLIMIT_AS, most, most + RESERVE)


def release_reserve():
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def started():
    """Tell the zygote that the code is to blame for what happens from now on."""
    BEGUN[0] = 1
    BEGUN.close()


def report(kind, text=""):
    """Put one record on the board: a letter, then text. Processes that the code forked put none."""
    if os.getpid() != PID:
        return
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > BOARD_SIZE and kind == "v":
        kind, data = "o", b""  # a value is never cut
    data = data[:BOARD_SIZE]
    BOARD[BOARD_HEAD.size : BOARD_HEAD.size + len(data)] = data
    BOARD_HEAD.pack_into(BOARD, 0, kind.encode(), len(data))


def clear_board():
    ctypes.memset(BOARD_AT, 0, len(BOARD))


def ends_quietly(source):
    """Return whether a final semicolon hides the value, as in a notebook."""
    return source.rstrip().endswith(b";")


def parse(source):
    """Return the program's body, and its last statement separately if that is an expression."""
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
    """Add the source line to a syntax error that was found after parsing."""
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


def traceback_of(error):
    """Return the traceback as Python prints it, without the frames of the zygote and the standard library."""
    trace = traceback.TracebackException.from_exception(error)
    keep_user_frames(trace, set())
    text = "".join(trace.format())
    if not trace.stack:
        text = text.replace("Traceback (most recent call last):\n", "", 1)
    return text


def print_and_keep(error):
    """Print the traceback and return it."""
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, error.__traceback__)
        return ""
    text = traceback_of(error)
    sys.stderr.write(text)
    return text


def innermost(error):
    """Return the code object in which an exception was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_code


def kind_of(error):
    """Return the letter for an exception that ended the code. It depends on type and number, never on the text."""
    if isinstance(error, MemoryError):
        return "m"
    if isinstance(error, KeyboardInterrupt):
        return "i"
    if isinstance(error, OSError) and error.errno in (errno.EFBIG, errno.ENOSPC, errno.EDQUOT):
        return "f"
    if isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN and error.filename is None:
        return "p"  # the error of fork
    if type(error) is RuntimeError and innermost(error) is threading.Thread.start.__code__:
        return "p"
    return "r"


def failed(error, kind=None):
    kind = kind or kind_of(error)
    if kind == "m":
        release_reserve()
    report(kind)
    try:
        report(kind, print_and_keep(error))
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


def execute(source, folder, whole):
    """Run the program and return its exit code, as the interpreter would. whole says that the last statement
    has no value to show."""
    last = None
    try:
        if whole:
            body = compile(source, FILE, "exec", 0, True)
        else:
            body, last = parse(source)
    except BaseException as error:
        main_module(source, folder)
        add_line(error)
        return failed(error, None if isinstance(error, MemoryError) else "s")
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
    """Do what the interpreter does at its end, except for destroying its objects."""
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


def read_all(fd):
    """Read a memory file from its start. Only this call uses its offset."""
    size = os.fstat(fd).st_size
    parts = []
    while size:
        part = os.read(fd, size)  # one read returns at most 2 GiB
        if not part:
            raise EOFError("a file of the call ends early")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def unpack(archive, names):
    """Write the call's files; names is a list of [name, length], checked by the parent."""
    at = 0
    for name, size in names:
        folder = os.path.dirname(name)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(name, "wb") as file:
            file.write(archive[at : at + size])
        at += size


def prepare(job, zygote):
    """Move the descriptors to their places, set limits, give up the remaining privileges."""
    os.setsid()
    if zygote.orphaned_by_parent:
        LIBC.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)
    job.take(zygote.link.fileno())
    source = job.code
    fault = None
    if job.flags & (STDIN | FILES | CODE):
        source, fault = take_files(job)
    os.dup2(job.fds[0], 1)
    os.dup2(job.fds[1], 2)
    os.closerange(3, zygote.highest)
    if zygote.namespaced:
        zygote.capabilities.drop()
    install_filter(zygote.call_filter, zygote.seccomp)
    set_limits(job, zygote)
    gc.enable()
    return source, fault


def take_files(job):
    """Handle what most calls do not have: long code, files, an input. Return the code, and an error if the files do
    not fit together or not fit into the work folder. The call is to blame for that."""
    stdin, files, code = (job.descriptor(flag) for flag in (STDIN, FILES, CODE))
    if stdin >= 0:
        os.dup2(stdin, 0)
    fault = None
    if files >= 0:
        archive = read_all(files)
        try:
            unpack(archive, job.extra["files"])
        except OSError as error:
            fault = error
    return job.code if code < 0 else read_all(code), fault


def run_other(source, job):
    """Run the code with another interpreter, from a file, with a small fixed environment."""
    try:
        with open(job.extra["file"], "wb") as file:
            file.write(source)
    except OSError as error:  # longer than the call's limit, or a folder of the call has its name
        started()
        os._exit(failed(error))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would the programs that it starts
        signal.signal(number, signal.SIG_DFL)
    argv = job.extra["argv"]
    started()
    os.execve(argv[0], argv, {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.getcwd(), "LC_ALL": "C.UTF-8"})


def child(job, zygote):
    global PID
    PID = os.getpid()
    try:
        source, fault = prepare(job, zygote)
        if fault is not None:
            started()
            os._exit(finish(failed(fault)))
        if "argv" in job.extra:
            run_other(source, job)
        started()
    except BaseException as error:
        report("E", "%s: %s" % (type(error).__name__, error))
        os._exit(1)
    code = 1
    try:
        code = finish(execute(source, zygote.folder, job.flags & NO_VALUE))
    finally:
        os._exit(code)
