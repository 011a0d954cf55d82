package sandbox_test

import "github.com/ropewalk/ropewalk/sandbox"

// networkThreats try to reach other machines and this machine's sockets.
var networkThreats = []threat{
	{name: "network: AF_INET", holds: sandbox.TierRlimits,
		code: `for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
    attempt(kind.name, socket.socket, socket.AF_INET, kind)
through`},
	{name: "network: AF_INET6", holds: sandbox.TierRlimits,
		code: `for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
    attempt(kind.name, socket.socket, socket.AF_INET6, kind)
through`},
	{name: "network: AF_UNIX", holds: sandbox.TierRlimits,
		code: `for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    attempt(kind.name, socket.socket, socket.AF_UNIX, kind)
through`},
	{name: "network: AF_UNIX, abstract and by path", holds: sandbox.TierRlimits, code: `def send(name):
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"out", name)
for name in SOCKETS: attempt(name, send, name)
def ask(name):
    one, other = socket.socketpair()
    one.connect(name)
for name in SOCKETS: attempt("connect " + name, ask, name)
def offer(name):
    one, other = socket.socketpair()
    one.bind(name)
for name in ("\0mine", "mine"): attempt("bind " + name, offer, name)
through`},
	{name: "network: AF_NETLINK", holds: sandbox.TierRlimits,
		code: `for protocol in range(22):
    attempt(str(protocol), socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, protocol)
through`},
	{name: "network: AF_PACKET", holds: sandbox.TierRlimits,
		code: `for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
    attempt(kind.name, socket.socket, socket.AF_PACKET, kind, 3)
through`},
	{name: "network: AF_VSOCK", holds: sandbox.TierRlimits,
		code: `for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM): attempt(kind.name, socket.socket, 40, kind)
through`},
	{name: "network: AF_ALG", holds: sandbox.TierRlimits,
		code: `attempt("alg", socket.socket, 38, socket.SOCK_SEQPACKET)
through`},
	{name: "network: every family by number", holds: sandbox.TierRlimits, code: `for family in range(64):
    for kind in (1, 2, 3, 5): kernel("socket", family, kind, 0)
through`},
	{name: "network: pairs of other families and kinds", holds: sandbox.TierRlimits, code: `for family in range(64):
    for kind in (1, 2, 3, 5):
        if (family, kind) != (1, 1): attempt(str((family, kind)), socket.socketpair, family, kind)
through`},
	{name: "network: out-of-band bytes on a pair", holds: sandbox.TierRlimits, code: `one, other = socket.socketpair()
for n in range(4):
    attempt("send", one.send, b"x", socket.MSG_OOB)
    attempt("sendto by number", one.sendto, b"x", socket.MSG_OOB | socket.MSG_DONTWAIT, "")
    attempt("sendmsg", one.sendmsg, [b"x"], [], socket.MSG_OOB)
one.send(b"plain")
for flags in (socket.MSG_OOB, socket.MSG_OOB | socket.MSG_PEEK | socket.MSG_DONTWAIT):
    try: other.recv(1, flags)
    except PermissionError: pass
    else: through.append("recv")
    try: other.recvmsg(1, 64, flags)
    except PermissionError: pass
    else: through.append("recvmsg")
if other.recv(8) != b"plain": through.append("lost")
through`},
	{name: "network: packet filters on a pair", holds: sandbox.TierRlimits, code: `one, other = socket.socketpair()
program = ctypes.create_string_buffer(bytes([6, 0, 0, 0, 255, 255, 0, 0]))
option = (ctypes.c_size_t * 2)(1, ctypes.addressof(program))
for name in (26, 50, 51, 52): attempt(str(name), one.setsockopt, socket.SOL_SOCKET, name, bytes(option))
through`},
	{name: "network: resolving a name", holds: sandbox.TierRlimits,
		code: `attempt("host", socket.gethostbyname, "example.com")
attempt("any", socket.getaddrinfo, "example.com", 80)
through`},
	{name: "network: fetching a page", holds: sandbox.TierRlimits, code: `import urllib.request
attempt("fetch", urllib.request.urlopen, "http://127.0.0.1:1/", timeout=1)
attempt("metadata", urllib.request.urlopen, "http://169.254.169.254/", timeout=1)
through`},
	{name: "network: system calls of 32-bit programs", only: "amd64", holds: sandbox.TierRlimits,
		ends: []sandbox.Status{sandbox.StatusKilled},
		code: `import mmap
# mov eax, 359 (socket); mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; ret
code = bytes([0xb8, 0x67, 1, 0, 0, 0xbb, 2, 0, 0, 0, 0xb9, 1, 0, 0, 0, 0x31, 0xd2, 0xcd, 0x80, 0xc3])
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())`},
	{name: "network: system calls of x32 programs", only: "amd64", holds: sandbox.TierRlimits,
		ends: []sandbox.Status{sandbox.StatusKilled},
		code: `LIBC.syscall(ctypes.c_long(0x40000000 + SYS["socket"]), 2, 1, 0)`},
}
