package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// threat is one attack. It runs in every tier that claims to stop it. Afterwards the next call must find everything as
// before, the zygote must be the same, and the host must not have changed.
type threat struct {
	name string
	// holds is the weakest tier that stops the attack.
	holds sandbox.Tier
	// code runs after the prelude. Unless ends says otherwise, its last expression lists what it was able to do and
	// must be [].
	code   string
	limits sandbox.Limits // zero means quick
	stdin  string
	// collect names files that the attack asks to get back; it must get none.
	collect []string
	// ends are the allowed verdicts; none means ok with the value [].
	ends []sandbox.Status
	// then checks the verdict further.
	then func(*testing.T, sandbox.Result)
	only string // the GOARCH that it applies to
	// crowd keeps other calls waiting, so that a long attack is set aside.
	crowd bool
}

// quick has low limits, so that rows that reach a limit are short.
var quick = sandbox.Limits{CPU: time.Second, Wall: 5 * time.Minute, MemoryBytes: 128 << 20, OutputBytes: 8 << 10}

// briefly has the limits for attacks that only the wall limit ends.
var briefly = sandbox.Limits{CPU: time.Second, Wall: 400 * time.Millisecond, MemoryBytes: 128 << 20,
	OutputBytes: 8 << 10}

// rawCalls are the system calls that attacks make by number.
var rawCalls = map[string]int{
	"socket": unix.SYS_SOCKET, "connect": unix.SYS_CONNECT, "ptrace": unix.SYS_PTRACE,
	"process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
	"process_madvise": unix.SYS_PROCESS_MADVISE, "pidfd_open": unix.SYS_PIDFD_OPEN,
	"pidfd_getfd": unix.SYS_PIDFD_GETFD, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL, "kcmp": unix.SYS_KCMP,
	"tgkill": unix.SYS_TGKILL, "rt_sigqueueinfo": unix.SYS_RT_SIGQUEUEINFO, "prlimit64": unix.SYS_PRLIMIT64,
	"ioprio_set": unix.SYS_IOPRIO_SET, "sched_setattr": unix.SYS_SCHED_SETATTR, "clone": unix.SYS_CLONE,
	"clone3": unix.SYS_CLONE3, "unshare": unix.SYS_UNSHARE, "setns": unix.SYS_SETNS, "mount": unix.SYS_MOUNT,
	"umount2": unix.SYS_UMOUNT2, "pivot_root": unix.SYS_PIVOT_ROOT, "chroot": unix.SYS_CHROOT,
	"fsopen": unix.SYS_FSOPEN, "fsmount": unix.SYS_FSMOUNT, "open_tree": unix.SYS_OPEN_TREE,
	"move_mount": unix.SYS_MOVE_MOUNT, "mount_setattr": unix.SYS_MOUNT_SETATTR,
	"clock_settime": unix.SYS_CLOCK_SETTIME, "settimeofday": unix.SYS_SETTIMEOFDAY, "adjtimex": unix.SYS_ADJTIMEX,
	"clock_adjtime": unix.SYS_CLOCK_ADJTIME, "add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY,
	"keyctl": unix.SYS_KEYCTL, "io_uring_setup": unix.SYS_IO_URING_SETUP, "io_uring_enter": unix.SYS_IO_URING_ENTER,
	"io_uring_register": unix.SYS_IO_URING_REGISTER, "bpf": unix.SYS_BPF, "userfaultfd": unix.SYS_USERFAULTFD,
	"personality": unix.SYS_PERSONALITY, "perf_event_open": unix.SYS_PERF_EVENT_OPEN,
	"kexec_load": unix.SYS_KEXEC_LOAD, "init_module": unix.SYS_INIT_MODULE, "finit_module": unix.SYS_FINIT_MODULE,
	"delete_module": unix.SYS_DELETE_MODULE, "reboot": unix.SYS_REBOOT, "swapon": unix.SYS_SWAPON,
	"acct": unix.SYS_ACCT, "quotactl": unix.SYS_QUOTACTL, "syslog": unix.SYS_SYSLOG,
	"name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
	"fanotify_init": unix.SYS_FANOTIFY_INIT, "inotify_init1": unix.SYS_INOTIFY_INIT1,
	"landlock_create_ruleset": unix.SYS_LANDLOCK_CREATE_RULESET, "seccomp": unix.SYS_SECCOMP,
	"memfd_create": unix.SYS_MEMFD_CREATE, "memfd_secret": unix.SYS_MEMFD_SECRET, "mbind": unix.SYS_MBIND,
	"set_mempolicy": unix.SYS_SET_MEMPOLICY, "move_pages": unix.SYS_MOVE_PAGES,
	"migrate_pages": unix.SYS_MIGRATE_PAGES, "lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE,
	"nfsservctl": unix.SYS_NFSSERVCTL, "vmsplice": unix.SYS_VMSPLICE, "splice": unix.SYS_SPLICE,
	"tee": unix.SYS_TEE, "io_setup": unix.SYS_IO_SETUP, "shmget": unix.SYS_SHMGET, "semget": unix.SYS_SEMGET,
	"msgget": unix.SYS_MSGGET, "mq_open": unix.SYS_MQ_OPEN, "mlockall": unix.SYS_MLOCKALL,
	"sethostname": unix.SYS_SETHOSTNAME, "vhangup": unix.SYS_VHANGUP, "timer_create": unix.SYS_TIMER_CREATE,
	"sync": unix.SYS_SYNC, "capset": unix.SYS_CAPSET, "unknown": 600,
}

// prelude defines the helpers of the attacks. The host's targets follow it.
const prelude = `import ctypes, os, signal, socket, sys, time
LIBC = ctypes.CDLL(None, use_errno=True)
through = []
def kernel(name, *args):
    """Make a raw system call; note it if it went through, and return its result."""
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    done = LIBC.syscall(ctypes.c_long(SYS[name]), *args)
    if done != -1: through.append(name)
    return done
def attempt(name, act, *args, **more):
    """Do something that must fail; note it if it does not."""
    try: done = act(*args, **more)
    except (OSError, ValueError, ImportError, RuntimeError): return None
    through.append(name)
    return done
`

// The ordinary form tries every attack in the strongest tier, which sees all of them; the long form in each tier.
func TestThreats(t *testing.T) {
	rows := threats()
	require.GreaterOrEqual(t, len(rows), 45)
	tiers := sandbox.Tiers()
	if !longform.Asked("ROPEWALK_TEST_SANDBOX") {
		tiers = []sandbox.Tier{sandbox.TierFull}
	}
	for _, tier := range tiers {
		t.Run(string(tier), func(t *testing.T) { everyThreat(t, tier, rows) })
	}
}

// threats returns all rows.
func threats() []threat {
	var all []threat
	for _, some := range [][]threat{resourceThreats, networkThreats, fileThreats, processThreats, breakageThreats,
		kernelThreats, leftoverThreats, zygoteThreats} {
		all = append(all, some...)
	}
	return all
}

func everyThreat(t *testing.T, tier sandbox.Tier, rows []threat) {
	t.Setenv("ROPEWALK_SECRET", "hunter2")
	host := newHost(t)
	executor, err := zygote.Open(zygote.Options{Tier: tier, Workers: 1})
	if err != nil {
		missing(t, tier, err)
	}
	defer func() { require.NoError(t, executor.Close()) }()
	words := host.words(rawCalls)
	aside := threat{crowd: true, code: "time.sleep(.5)"} // starts the zygote for calls that are set aside
	for executor.Stats().Aside == 0 {
		aside.run(t, executor, words)
	}
	untouched := look(t, executor, tier)
	for range 3 { // a zygote's memory settles during its first calls
		untouched = look(t, executor, tier)
	}
	before := host.snapshot(t)
	for _, row := range rows {
		if !tier.AtLeast(row.holds) || row.only != "" && row.only != runtime.GOARCH {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			row.judge(t, row.run(t, executor, words))
			require.Equal(t, untouched, look(t, executor, tier), "the next call found traces")
			host.unchanged(t, before)
		})
	}
}

// missing skips the test because a tier is missing, or fails it if the tier is required: ROPEWALK_REQUIRE_TIER names
// the strongest required tier, and all weaker ones are required too.
func missing(t *testing.T, tier sandbox.Tier, err error) {
	t.Helper()
	required, named := sandbox.ParseTier(os.Getenv("ROPEWALK_REQUIRE_TIER"))
	require.False(t, named == nil && required.AtLeast(tier), "tier %s is required, but: %v", tier, err)
	t.Skipf("the machine lacks tier %s: %v", tier, err)
}

func (row threat) run(t *testing.T, e sandbox.Executor, words string) sandbox.Result {
	limits := row.limits
	if limits == (sandbox.Limits{}) {
		limits = quick
	}
	call := sandbox.Call{Code: prelude + words + row.code, Stdin: row.stdin, Limits: limits, Collect: row.collect}
	if row.crowd {
		defer crowd(t, e)()
	}
	results, err := e.Run(t.Context(), []sandbox.Call{call})
	require.NoError(t, err, "an attack's verdict is never breakage")
	return results[0]
}

// crowd keeps every worker busy with small calls until it is told to stop.
func crowd(t *testing.T, e sandbox.Executor) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var feeders sync.WaitGroup
	for range 4 {
		feeders.Go(func() {
			for ctx.Err() == nil {
				_, _ = e.Run(ctx, []sandbox.Call{{Code: "sum(range(100_000))"}}) // it may fail because the context ends
			}
		})
	}
	return func() { cancel(); feeders.Wait() }
}

func (row threat) judge(t *testing.T, got sandbox.Result) {
	said := fmt.Sprintf("%s, value %s, stdout %q, stderr %q", got.Status, got.Value, clip(got.Stdout), clip(got.Stderr))
	if row.ends == nil {
		require.Equal(t, sandbox.StatusOK, got.Status, said)
		require.Equal(t, "[]", got.Value, "what the attack was able to do; %s", said)
	} else {
		require.Contains(t, row.ends, got.Status, said)
	}
	if row.then != nil {
		row.then(t, got)
	}
	require.NotContains(t, got.Stdout+got.Stderr+got.Value, secret, "the host's secret leaked")
	for _, f := range got.Files {
		require.NotContains(t, string(f.Content), secret, "the host's secret leaked")
	}
}

func clip(s string) string { return s[max(0, len(s)-600):] }

// witness describes everything that a call finds, except sizes and ids that the tier does not fix.
const witness = `import builtins, ctypes, gc, json, math, os, random, resource, signal, string, sys, threading
full = FULL
def opened():
    for fd in range(256):
        try: os.fstat(fd)
        except OSError: continue
        yield fd
state = dict(
    times=[os.stat(".").st_atime_ns, os.stat(".").st_mtime_ns, os.stat(".").st_nlink],
    folder=os.listdir("."), mode=oct(os.stat(".").st_mode), marks=os.listxattr("."), env=dict(os.environ),
    argv=sys.argv, path=sys.path,
    cwd=os.getcwd(), umask=os.umask(0o077), opened=list(opened()), nice=os.getpriority(os.PRIO_PROCESS, 0),
    policy=os.sched_getscheduler(0),
    affinity=sorted(os.sched_getaffinity(0)), limits=[resource.getrlimit(k) for k in range(16)],
    mask=sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    handlers=[str(signal.getsignal(s)) for s in range(1, 32)],
    modules=sorted(sys.modules), threads=threading.active_count(),
    personality=ctypes.CDLL(None).personality(0xffffffff),
    builtins=sorted(vars(builtins)), types=[type(print).__name__, type(open).__name__, type(len).__name__,
    type(__import__).__name__],
    sums=[1 + 1, 2 * 3, len("abc"), math.sqrt(2), json.dumps([1]), sum(range(10)), 5, 7, 256], digits=string.digits,
    random=random.random(),
    hook=sys.excepthook is sys.__excepthook__, streams=[sys.stdout.name, sys.stderr.name, sys.stdin.name],
    recursion=sys.getrecursionlimit(),
    collecting=gc.isenabled(), trace=sys.gettrace() is None, name=__name__, timer=signal.getitimer(signal.ITIMER_REAL),
    stdin=sys.stdin.read(),
)
if full:
    space = os.statvfs(".")
    state.update(pid=os.getpid(), group=os.getpgid(0), root=sorted(os.listdir("/")),
            space=(space.f_bfree, space.f_ffree), host=os.uname().nodename,
            new=os.fstat(os.open("new", os.O_CREAT | os.O_RDWR)).st_ino)
print(json.dumps(state, sort_keys=True, default=str))`

// look runs the witness.
func look(t *testing.T, e sandbox.Executor, tier sandbox.Tier) string {
	t.Helper()
	full := "False"
	if tier == sandbox.TierFull {
		full = "True"
	}
	limits := quick
	limits.OutputBytes = 64 << 10
	results, err := e.Run(t.Context(), []sandbox.Call{{Code: strings.Replace(witness, "FULL", full, 1),
		Limits: limits}})
	require.NoError(t, err)
	require.Equal(t, sandbox.StatusOK, results[0].Status, results[0].Stderr)
	return results[0].Stdout
}
