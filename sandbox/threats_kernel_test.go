package sandbox_test

import "github.com/ropewalk/ropewalk/sandbox"

// kernelThreats use less common parts of the kernel.
var kernelThreats = []threat{
	{name: "namespaces by unshare", holds: sandbox.TierRlimits,
		code: `for bit in (0x10000000, 0x20000, 0x40000000, 0x8000000, 0x4000000, 0x20000000, 0x2000000, 0x80):
    kernel("unshare", bit)
through`},
	{name: "namespaces by clone", holds: sandbox.TierRlimits,
		code: `for bit in (0x10000000, 0x20000, 0x40000000, 0x8000000, 0x4000000, 0x20000000, 0x2000000):
    pid = kernel("clone", bit | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
if kernel("clone3", ctypes.create_string_buffer(bytes([0, 0, 0, 0x10]) + bytes(84)), 88) == 0: os._exit(0)
through`},
	{name: "entering namespaces", holds: sandbox.TierRlimits, code: `for fd in (0, 1, 2): kernel("setns", fd, 0)
through`},
	{name: "mount", holds: sandbox.TierRlimits, code: `os.mkdir("at")
kernel("mount", b"none", b"at", b"tmpfs", 0, None)
kernel("mount", b"/", b"at", None, 4096, None)
kernel("mount", None, b"/", None, 32 | 4096, None)
kernel("mount", b"proc", b"at", b"proc", 0, None)
kernel("umount2", b".", 2)
kernel("umount2", b"/usr", 2)
through`},
	{name: "the newer mount calls", holds: sandbox.TierRlimits, code: `handle = kernel("fsopen", b"tmpfs", 0)
kernel("fsmount", handle, 0, 0)
kernel("open_tree", -100, b"/", 1)
kernel("move_mount", 0, b"", -100, b".", 4)
kernel("mount_setattr", -100, b"/", 0, ctypes.create_string_buffer(32), 32)
through`},
	{name: "chroot and pivot_root", holds: sandbox.TierRlimits, code: `kernel("chroot", b".")
kernel("pivot_root", b".", b".")
through`},
	{name: "clock", holds: sandbox.TierRlimits,
		code: `kernel("clock_settime", 0, ctypes.byref((ctypes.c_long * 2)(1, 0)))
kernel("settimeofday", ctypes.byref((ctypes.c_long * 2)(1, 0)), None)
kernel("adjtimex", ctypes.create_string_buffer(256))
kernel("clock_adjtime", 0, ctypes.create_string_buffer(256))
attempt("settime", time.clock_settime, time.CLOCK_REALTIME, 1.0)
through`},
	{name: "kernel keyring", holds: sandbox.TierRlimits,
		code: `for ring in range(-8, 0): kernel("add_key", b"user", b"left", b"x", 1, ring)
kernel("request_key", b"user", b"left", None, -4)
for command in range(32): kernel("keyctl", command, -4, 0, 0, 0)
through`},
	{name: "io_uring", holds: sandbox.TierRlimits, code: `kernel("io_uring_setup", 8, ctypes.create_string_buffer(120))
kernel("io_uring_enter", 3, 1, 0, 0, None)
kernel("io_uring_register", 3, 0, None, 0)
through`},
	{name: "bpf", holds: sandbox.TierRlimits,
		code: `for command in range(8):
    kernel("bpf", command, ctypes.create_string_buffer(bytes([1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4]) + bytes(115)),
            128)
through`},
	{name: "userfaultfd", holds: sandbox.TierRlimits, code: `kernel("userfaultfd", 0)
kernel("userfaultfd", 1)
through`},
	{name: "personality", holds: sandbox.TierRlimits,
		code: `for persona in (0x400000, 8, 0x20000): kernel("personality", persona)
through`},
	{name: "performance counters", holds: sandbox.TierRlimits,
		code: `for kind in range(3):
    kernel("perf_event_open", ctypes.create_string_buffer(bytes([kind, 0, 0, 0, 112, 0, 0, 0]) + bytes(104)), 0, -1, -1,
            0)
through`},
	{name: "another kernel, modules, reboot", holds: sandbox.TierRlimits, code: `kernel("kexec_load", 0, 0, None, 0)
kernel("init_module", b"x", 1, b"")
kernel("finit_module", 0, b"", 0)
kernel("delete_module", b"loop", 0)
kernel("reboot", 0xfee1dead, 672274793, 0, None)
kernel("swapon", b"x", 0)
kernel("acct", b"x")
kernel("quotactl", 0, None, 0, None)
kernel("vhangup")
kernel("syslog", 3, ctypes.create_string_buffer(64), 64)
through`},
	{name: "loading filters and rulesets", holds: sandbox.TierRlimits,
		code: `allow = ctypes.create_string_buffer(bytes([6, 0, 0, 0, 0, 0, 0xff, 0x7f]))
program = (ctypes.c_size_t * 2)(1, ctypes.addressof(allow))
for flags in (0, 8): kernel("seccomp", 1, flags, program)
if LIBC.prctl(22, 2, program, 0, 0) == 0: through.append("prctl")
kernel("landlock_create_ruleset", None, 0, 1)
through`},
	{name: "memory policy of the machine", holds: sandbox.TierRlimits, code: `kernel("mbind", 0, 4096, 0, None, 0, 0)
kernel("set_mempolicy", 0, None, 0)
through`},
	{name: "pages between pipes", holds: sandbox.TierRlimits, code: `one, other = os.pipe()
kernel("vmsplice", other, (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8), 1, 0)
kernel("tee", one, other, 1, 2)
source = os.open("/usr/bin/env", os.O_RDONLY)
kernel("splice", source, None, other, None, 1, 0)
through`},
	{name: "removed and future system calls", holds: sandbox.TierRlimits,
		code: `kernel("lookup_dcookie", 0, None, 0)
kernel("nfsservctl", 0, None, None)
for number in range(470, 1000):
    SYS["unknown"] = number
    kernel("unknown", 0, 0, 0, 0, 0, 0)
through`},
	{name: "process attributes", holds: sandbox.TierRlimits,
		code: `# memory layout, timer slack, machine checks, speculation, core scheduling, shadow stacks
for option in (35, 29, 33, 53, 62, 74, 26, 7, 8, 9, 10, 13, 14, 24, 28):
    if LIBC.prctl(option, 1, 0, 0, 0) == 0: through.append(option)
through`},
}
