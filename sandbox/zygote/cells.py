# Cells: a session's interpreter reads them from its socket, runs them in one namespace and answers each of them. Code
# in a cell can forge what the interpreter sends; see the package documentation.

import select

CONTROL = 3  # the socket's descriptor in an interpreter
# A cell is a packet "c", nonce, flags, code; or "b", nonce, flags, length of the head, followed by a packet with
# descriptors: one of a file with head, code and files in sequence, and one of the input if there is one. An answer is a
# kind, the nonce, and a body. The body of a cell's last packet is a letter, the interpreter's peak memory, and text.
NONCE = slice(1, 9)
FLAGS = 9
CODE = 10  # offset of the code
HEAD = struct.Struct("=cQBQ")
SPIN = 1  # flag: few cells run, so it pays to spin while waiting for the next one; NO_VALUE is another flag
PEAK = struct.Struct("=Q")  # most resident memory so far, in KiB
PIECE = 32 << 10  # bytes of text or file in one packet
MOST_INLINE = 32 << 10
SOURCES = 4096  # cells whose source tracebacks can show
EMPTY = "/dev/null"
SPIN_TIME = 5e-5  # seconds


class Spin:
    """Decides whether to spin while waiting for the next cell: not if the last spin was in vain.
    session_spin.go does the same in the parent."""

    def __init__(self):
        self.skip = False

    def due(self):
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
        self.fed = False  # whether the last cell had an input of its own
        module = types.ModuleType("__main__")
        module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = module
        self.names = module.__dict__
        sys.argv[:] = [FILE]

    def serve(self):
        # A plain read costs half as much as the socket's own method. Reading into existing memory saves an allocation.
        read, getpid, run, there, now = os.readv, os.getpid, self.run, self.poll.poll, time.perf_counter
        room = memoryview(bytearray(MOST_INLINE + CODE))
        spin, few = Spin(), True
        while True:
            # The next cell comes either at once or much later. Waking up takes several times as long as a cell, so the
            # interpreter spins for the next cell before it blocks.
            if few and spin.due():
                until, came = now() + SPIN_TIME, there(0)
                while not came and now() < until:
                    came = there(0)
                spin.learn(came)
            size = read(CONTROL, (room,))
            if not size:
                os._exit(0)  # the parent has ended
            data = bytes(room[:size])
            nonce, flags = data[NONCE], data[FLAGS]
            few = flags & SPIN
            if data[:1] == b"c" and not self.fed:
                (kind, text), collect = run(data[CODE:], flags), ()
            else:
                kind, text, collect = self.run_bundle(data)
            if getpid() != PID:
                os._exit(finish(0 if kind in "ov" else 1))  # a process that the code forked
            flush()
            for place, name in enumerate(collect):
                self.hand_over(nonce, place, name)
            self.answer(nonce, kind, text)
            if kind == "m":
                os._exit(1)  # the memory will not be enough for the next cell either

    def run_bundle(self, data):
        """Run a cell with files or an input, or a cell after one with an input."""
        try:
            source, collect = self.unpack(data)
        except OSError as error:  # no space for its files, or a folder has the name of a file
            return (*tell(error, kind_of(error)), ())
        return (*self.run(source, data[FLAGS]), collect)

    def unpack(self, data):
        """Write the cell's files and set its input; return its code and the names of the files to send back."""
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
        """Make a descriptor the standard input; −1 restores the empty input."""
        fed, self.fed = self.fed, fd >= 0
        if not fed and fd < 0:
            return
        empty = os.open(EMPTY, os.O_RDONLY) if fd < 0 else -1
        os.dup2(max(fd, empty), 0)
        if empty >= 0:
            os.close(empty)
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)

    def run(self, source, flags):
        """Run one cell; return the kind of its end and the text of its value or traceback."""
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
        """Send the cell's end. Long texts are sent before it in pieces."""
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
        """Send a file of the work folder, if it is a regular file."""
        path = os.path.join(self.folder, name)
        head = b"f" + nonce + place.to_bytes(4, sys.byteorder)
        try:
            if not os.path.isfile(path):
                return
            with open(path, "rb") as file:
                os.write(CONTROL, head)  # the file exists, but may be empty
                for piece in iter(lambda: file.read(PIECE), b""):
                    os.write(CONTROL, head + piece)
        except OSError:
            return  # a file that the cell may not read is not sent


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
    """Compile the cell's body, and its last statement separately if that is an expression."""
    if flags & NO_VALUE:
        return compile(source, name, "exec", 0, True), None
    tree = compile(source, name, "exec", _ast.PyCF_ONLY_AST, True)
    if not tree.body or type(tree.body[-1]) is not ast.Expr or ends_quietly(source):
        return compile(source, name, "exec", 0, True), None  # from the text, which is faster
    last = compile(ast.Expression(tree.body.pop().value), name, "eval", 0, True)
    return compile(tree, name, "exec", 0, True), last


def tell(error, kind):
    """Print the error as for calls; return its kind and its traceback."""
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
