# Cells: the interpreter of a session reads them from its socket, runs them in one namespace and answers each.
# What it says of a cell is a description that its own code may forge; see the package's doc.

import select

CONTROL = 3  # the socket's descriptor in an interpreter
# A cell is a packet "c", nonce, flags, code; or "b", nonce, flags, bytes of the head, and then one that brings descriptors: of head,
# code and files, one after another, and perhaps of the input. An answer is a kind, the nonce, and the kind's own: of the
# last one a letter, the interpreter's peak of memory, and text.
NONCE = slice(1, 9)
FLAGS = 9
CODE = 10  # where it begins
HEAD = struct.Struct("=cQBQ")
LOOK_OUT = 1  # flag: few cells run, so that the next one is worth looking out for; NO_VALUE is another
PEAK = struct.Struct("=Q")  # KiB resident at most, so far
PIECE = 32 << 10  # bytes of text or file in one packet
MOST_INLINE = 32 << 10
SOURCES = 4096  # cells whose source tracebacks can show
EMPTY = "/dev/null"
LOOK = 5e-5  # seconds


class Lookout:
    """Says whether it is worth while to look out for what comes next: not when the last look was in vain.
    session_lookout.go does the same at the other end."""

    def __init__(self):
        self.skip = False

    def looks(self):
        skip, self.skip = self.skip, False
        return not skip

    def learn(self, came):
        self.skip = not came


class Cells:
    def __init__(self, peer, folder):
        self.peer = peer
        self.folder = folder
        self.poll = select.poll()
        self.poll.register(CONTROL, select.POLLIN)
        self.count = 0
        self.fed = False  # the last cell had an input of its own
        module = types.ModuleType("__main__")
        module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = module
        self.names = module.__dict__
        sys.argv[:] = [FILE]

    def serve(self):
        # A plain read costs half of what the socket's own does; into memory that is there, it spares the allocator.
        read, getpid, run, there, now = os.readv, os.getpid, self.run, self.poll.poll, time.perf_counter
        room = memoryview(bytearray(MOST_INLINE + CODE))
        lookout, few = Lookout(), True
        while True:
            # Cells follow close upon one another or not for long. To be woken takes several times as long as a
            # cell, so the next one is looked out for before it is waited for.
            if few and lookout.looks():
                until, came = now() + LOOK, there(0)
                while not came and now() < until:
                    came = there(0)
                lookout.learn(came)
            size = read(CONTROL, (room,))
            if not size:
                os._exit(0)  # the parent is gone
            data = bytes(room[:size])
            nonce, flags = data[NONCE], data[FLAGS]
            few = flags & LOOK_OUT
            if data[:1] == b"c" and not self.fed:
                (kind, text), collect = run(data[CODE:], flags), ()
            else:
                kind, text, collect = self.run_bundle(data)
            if getpid() != PID:
                os._exit(finish(0 if kind in "ov" else 1))  # a copy that the code forked of itself
            flush()
            for place, name in enumerate(collect):
                self.hand_over(nonce, place, name)
            self.answer(nonce, kind, text)
            if kind == "m":
                os._exit(1)  # memory that is short stays short

    def run_bundle(self, data):
        """Run a cell that comes with files or an input, or after one that did."""
        try:
            source, collect = self.unpack(data)
        except OSError as error:  # no room for its files, or one that is a folder
            return (*tell(error, kind_of(error)), ())
        return (*self.run(source, data[FLAGS]), collect)

    def unpack(self, data):
        """Lay out the cell's files and input; return its code and the names that it hands over."""
        if data[:1] == b"c":
            self.feed(-1)
            return data[CODE:], ()
        fds = descriptors(self.peer.recvmsg(16, socket.CMSG_SPACE(8))[1])
        try:
            head = json.loads(take(fds[0], HEAD.unpack(data)[3]))
            source = take(fds[0], head["code"])
            for name, size in head["files"]:
                put_file(os.path.join(self.folder, name), take(fds[0], size))
            self.feed(fds[1] if len(fds) > 1 else -1)
        finally:
            for fd in fds:
                os.close(fd)
        return source, head["collect"]

    def feed(self, fd):
        """Make a descriptor the standard input, or none of it what it was at first."""
        fed, self.fed = self.fed, fd >= 0
        if not fed and fd < 0:
            return
        empty = os.open(EMPTY, os.O_RDONLY) if fd < 0 else -1
        os.dup2(max(fd, empty), 0)
        if empty >= 0:
            os.close(empty)
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)

    def run(self, source, flags):
        """Run one cell; return the kind of its end and the value's or traceback's text."""
        self.count += 1
        name = "<cell %d>" % self.count
        lines = source.decode("utf-8", "replace").splitlines(True)
        linecache.cache[name] = (len(source), None, lines, name)
        linecache.cache.pop("<cell %d>" % (self.count - SOURCES), None)
        try:
            body, last = compile_cell(source, name, flags)
        except BaseException as error:
            if isinstance(error, SyntaxError) and error.text is None and error.lineno:
                error.text = linecache.getline(name, error.lineno) or None
            return tell(error, "m" if isinstance(error, MemoryError) else "s")
        try:
            exec(body, self.names)
            value = None if last is None else eval(last, self.names)
            return ("o", "") if value is None else ("v", repr(value))
        except SystemExit as error:
            os._exit(finish(exit_code(error)))
        except BaseException as error:
            return tell(error, kind_of(error))

    def answer(self, nonce, kind, text):
        """Send the cell's end, longer texts before it in pieces."""
        data = text.encode("utf-8", "backslashreplace")
        if len(data) > PIECE:
            self.send_pieces(b"t" + nonce, data)
            data = b""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        os.write(CONTROL, b"." + nonce + kind.encode() + PEAK.pack(peak) + data)

    def send_pieces(self, head, data):
        for at in range(0, len(data), PIECE):
            os.write(CONTROL, head + data[at:at + PIECE])

    def hand_over(self, nonce, place, name):
        """Send a file of the work folder, if it is one."""
        path = os.path.join(self.folder, name)
        head = b"f" + nonce + place.to_bytes(4, sys.byteorder)
        try:
            if not os.path.isfile(path):
                return
            with open(path, "rb") as file:
                os.write(CONTROL, head)  # it is there, though it may be empty
                for piece in iter(lambda: file.read(PIECE), b""):
                    os.write(CONTROL, head + piece)
        except OSError:
            return  # what the cell may not read it cannot hand over


def descriptors(extra):
    fds = array.array("i")
    for level, kind, block in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(block[: len(block) - len(block) % fds.itemsize])
    return list(fds)


def take(fd, size):
    parts = []
    while size:
        part = os.read(fd, size)
        if not part:
            raise EOFError("a file of the cell ends early")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def put_file(name, content):
    folder = os.path.dirname(name)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(name, "wb") as file:
        file.write(content)


def compile_cell(source, name, flags):
    """Compile the cell's body and, if its last statement is an expression, that one apart."""
    if flags & NO_VALUE:
        return compile(source, name, "exec", 0, True), None
    tree = compile(source, name, "exec", _ast.PyCF_ONLY_AST, True)
    if not tree.body or type(tree.body[-1]) is not ast.Expr or ends_quietly(source):
        return compile(source, name, "exec", 0, True), None  # from the text: the tree would have to be read back
    last = compile(ast.Expression(tree.body.pop().value), name, "eval", 0, True)
    return compile(tree, name, "exec", 0, True), last


def tell(error, kind):
    """Print the error as calls do; return its kind and its traceback."""
    if kind == "m":
        release_reserve()
    try:
        return kind, print_and_keep(error)
    except BaseException:
        return kind, ""


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
