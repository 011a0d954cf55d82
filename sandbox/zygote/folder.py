# The work folder: telling whether a call has changed it, collecting files from it, emptying it.

import stat

MOST_FOUND = 8 << 20  # bytes of all collected files
TOO_MUCH = 1  # flag of a reply: the collected files exceed the limit and are left out


class FolderState:
    """Reads the state of a folder without the names in it, which must not get into the zygote. Every change, even one
    that was undone, shows in the time of change, which a call cannot set. Before Linux 6.13 that time has the
    resolution of a tick, so everything else is compared too, with the mount's free space and inodes if it is a mount
    of its own. Buffers and arguments are made once: objects that come and go in the zygote scatter free memory, and
    then a child copies more pages."""

    SIZES = 256, 120  # of struct statx and struct statfs

    def __init__(self, folder, mounted, statx):
        self.path = ctypes.c_char_p(os.fsencode(folder))
        self.mounted = mounted
        self.call = ctypes.CDLL(None, use_errno=True).syscall
        STATX_ALL = 0xFFF
        self.words = [ctypes.c_long(n) for n in (statx, AT_FDCWD, 0, STATX_ALL)]
        self.statfs, self.compare = LIBC.statfs, LIBC.memcmp
        self.size = ctypes.c_size_t(sum(self.SIZES))

    def buffer(self):
        """Return the addresses of memory for one state, which is never freed."""
        block = ctypes.create_string_buffer(sum(self.SIZES))
        at = ctypes.addressof(block)
        return block, ctypes.c_void_p(at), ctypes.c_void_p(at + self.SIZES[0])

    def look(self, into):
        number, folder, flags, mask = self.words
        check(self.call(number, folder, self.path, flags, mask, into[1]), "look at work folder")
        if self.mounted:
            check(self.statfs(self.path, into[2]), "look at work folder's mount")

    def equal(self, one, other):
        return self.compare(one[1], other[1], self.size) == 0


def open_below(folder, name):
    """Open a regular file below a folder without following links, or return −1. The call may have left
    a link, a pipe or a file without permissions as a trap."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        parts = name.split("/")
        for part in parts[:-1]:
            inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = inner
        file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    except OSError:
        return -1
    finally:
        os.close(fd)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return -1


def collect(folder, wanted, found):
    """Write to the parent's memory file: the length of an index, the index ([index of the name,
    length] each), the contents. wanted is a memory file with the names. Return flags."""
    names = json.loads(os.pread(wanted, os.fstat(wanted).st_size, 0))
    os.ftruncate(found, 0)
    os.lseek(found, 0, os.SEEK_SET)
    files = [(i, size_below(folder, name)) for i, name in enumerate(names)]
    files = [(i, size) for i, size in files if size >= 0]
    flags = 0
    if sum(size for _, size in files) > MOST_FOUND:
        flags |= TOO_MUCH
    kept = [] if flags & TOO_MUCH else files
    index = json.dumps(kept).encode()
    os.write(found, struct.pack("=I", len(index)) + index)
    for i, size in kept:
        fd = open_below(folder, names[i])  # one at a time: this process may not be able to open all of them
        done = 0
        while done < size:
            sent = os.sendfile(found, fd, done, size - done)
            if sent == 0:
                raise EOFError("a collected file shrank while no call ran")
            done += sent
        os.close(fd)
    return flags


def size_below(folder, name):
    """Return the size of a regular file below a folder, or −1 if there is none."""
    fd = open_below(folder, name)
    if fd < 0:
        return -1
    size = os.fstat(fd).st_size
    os.close(fd)
    return size


def empty(folder):
    """Remove the content of a folder and return 0. Nested folders are moved up one level, so that neither
    depth nor permissions can prevent it."""
    os.chmod(folder, 0o700)
    moved = 0
    while True:
        names = os.listdir(folder)
        if not names:
            return 0
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isdir(path):
                os.unlink(path)
                continue
            os.chmod(path, 0o700)
            for inner in os.scandir(path):
                if inner.is_dir(follow_symlinks=False):
                    os.chmod(inner.path, 0o700)  # a folder must be writable to be moved
                    while os.path.lexists(os.path.join(folder, str(moved))):
                        moved += 1
                    os.rename(inner.path, os.path.join(folder, str(moved)))
                else:
                    os.unlink(inner.path)
            os.rmdir(path)
