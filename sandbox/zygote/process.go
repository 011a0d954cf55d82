package zygote

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

//go:embed confine.py
var confineSource string

//go:embed child.py
var childSource string

//go:embed serve.py
var serveSource string

// serveCalls ends the script of a zygote that runs calls.
const serveCalls = `main(json.loads(sys.argv.pop()), Zygote)`

// boot compiles the script under a name that tracebacks can leave out.
const boot = `import sys; exec(compile(sys.argv.pop(), "<zygote>", "exec"))`

const (
	startGrace = 20 * time.Second // for a cold interpreter on a loaded machine
	stopGrace  = 5 * time.Second
	logGrace   = time.Second // for the log's end after the zygote's
	// nobody is the customary user and group id without rights, for calls of a parent that is root.
	nobody = 65534
	// inside is the user and group id that calls see in the tier "full".
	inside = 1000
	// mostProcesses bounds processes and threads of one call, the zygote included.
	mostProcesses = 32
)

// zygoteCapabilities hold in the zygote's own namespaces alone: mounting and process ids, the
// limit on namespaces. Children give them up.
var zygoteCapabilities = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE}

// settings is what a zygote is told on its command line.
type settings struct {
	Link       int          `json:"link"` // descriptor
	Tier       sandbox.Tier `json:"tier"`
	Folder     string       `json:"folder"`
	Filter     string       `json:"filter"` // hexadecimal
	CallFilter string       `json:"call_filter"`
	Seccomp    int          `json:"seccomp"` // numbers of system calls
	PivotRoot  int          `json:"pivot_root"`
	Processes  int          `json:"processes"` // −1: no limit
	Path       []string     `json:"path"`      // folders of installed packages
	Visible    []string     `json:"visible"`   // what else calls may read
	Warm       string       `json:"warm"`      // the package set\'s code
}

// plan is how an executor starts its zygotes.
type plan struct {
	python python
	tier   sandbox.Tier
	sets   sets
	others []Interpreter
}

// process is one zygote. It serves one call at a time; its slot's owner alone calls execute.
type process struct {
	plan    plan
	set     string // its packages
	link    *link
	command *exec.Cmd
	log     *tail
	version string // of the interpreter
	calls   uint64
	scratch [16 << 10]byte // what streams are read into
	nudge   *nudge         // when its call is to be looked at; a mother has none
	bounds  []controller   // of its control groups
	exited  chan struct{}
	once    sync.Once
}

// start launches a zygote and waits until it is warm and confined. It must run on a thread that
// outlives the zygote, which is told to die with it.
func (p plan) start(folder string, set PackageSet) (*process, error) {
	link, theirs, err := newLink()
	if err != nil {
		return nil, err
	}
	z := &process{plan: p, set: set.Name, link: link, log: &tail{}, bounds: callBounds(), exited: make(chan struct{})}
	if z.nudge, err = newNudge(); err != nil {
		link.close()
		theirs.Close()
		return nil, err
	}
	err = z.launch(p, folder, set, theirs)
	theirs.Close() // so that the link ends when the zygote does
	if err != nil {
		link.close()
		z.nudge.close()
		return nil, fmt.Errorf("start %s: %w", p.python.Executable, err)
	}
	err = z.greet()
	if err == nil {
		err = z.rehearse()
	}
	if err != nil {
		z.stop()
		return nil, fmt.Errorf("start %s: %w", p.python.Executable, err)
	}
	return z, nil
}

func (z *process) launch(p plan, folder string, set PackageSet, link *os.File) error {
	script := strings.Join([]string{confineSource, childSource, serveSource, serveCalls}, "\n")
	return z.launchScript(p, p.settings(folder, set), script, interpreterEnvironment, link)
}

// launchScript starts an interpreter with a script that reads its settings from its last argument.
func (z *process) launchScript(p plan, settings any, script string, environment []string, link *os.File) error {
	told, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("encode settings: %w", err)
	}
	z.command = exec.Command(p.python.Executable, append(interpreterFlags(), "-c", boot, string(told), script)...)
	// The interpreter's own environment; calls see none.
	z.command.Env = environment
	z.command.Dir = "/"
	z.command.ExtraFiles = []*os.File{link}
	z.command.SysProcAttr = p.attributes()
	// Pipes, so that the interpreter makes of its streams what it will make of a call's.
	z.command.Stdout, z.command.Stderr = io.MultiWriter(z.log), z.log
	z.command.WaitDelay = logGrace
	if err := z.command.Start(); err != nil {
		return err
	}
	joined := join(z.command.Process.Pid, z.bounds)
	go func() {
		defer close(z.exited)
		_ = z.command.Wait() // how a zygote ended is told by its log
		joined.remove()
	}()
	return nil
}

// interpreterFlags: no site module, no user's packages, no compiled files written.
func interpreterFlags() []string { return []string{"-S", "-s", "-B"} }

// interpreterEnvironment is a zygote's. One thread in linear algebra: a fork takes no others along. Memory from the C
// library, which asks for huge pages: forking is then a quarter to a half faster.
var interpreterEnvironment = []string{"PYTHONHASHSEED=0", "PYTHONUTF8=1", "LC_ALL=C.UTF-8", "LD_BIND_NOW=1",
	"PYTHONMALLOC=malloc", "MALLOC_ARENA_MAX=1", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
	"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"}

func (p plan) settings(folder string, set PackageSet) settings {
	s := settings{Link: 3, Tier: p.tier, Folder: folder, Filter: zygoteFilter(p.tier), CallFilter: callFilter(),
		Seccomp: unix.SYS_SECCOMP, PivotRoot: unix.SYS_PIVOT_ROOT, Processes: -1,
		Path: p.python.Path, Visible: p.python.Path, Warm: set.Warm}
	if p.tier == sandbox.TierFull {
		s.CallFilter, s.Processes = "", mostProcesses
	}
	if p.tier == sandbox.TierRlimits && !filterWorks() {
		s.Filter, s.CallFilter = "", ""
	}
	return s
}

// filterWorks asks whether the kernel takes seccomp filters that refuse with an error.
func filterWorks() bool {
	const actionAvailable = 2 // SECCOMP_GET_ACTION_AVAIL
	action := uint32(unix.SECCOMP_RET_ERRNO)
	return seccomp(actionAvailable, &action) == nil
}

// attributes: as root, calls run as another user in every tier.
func (p plan) attributes() *syscall.SysProcAttr {
	root := os.Geteuid() == 0
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.tier != sandbox.TierFull {
		if root {
			a.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		}
		return a
	}
	user, group := os.Geteuid(), os.Getegid()
	if root {
		user, group = nobody, nobody
	}
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNS
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: user, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: group, Size: 1}}
	a.GidMappingsEnableSetgroups = root
	a.Credential = &syscall.Credential{Uid: inside, Gid: inside, NoSetGroups: !root}
	a.AmbientCaps = zygoteCapabilities
	return a
}

// greet reads the zygote's first message.
func (z *process) greet() error {
	watched := []unix.PollFd{{Fd: int32(z.link.fd), Events: unix.POLLIN}}
	var ready int
	err := again(func() (err error) {
		ready, err = unix.Poll(watched, milliseconds(startGrace))
		return err
	})
	if err == nil && ready == 0 {
		err = fmt.Errorf("it took more than %s", startGrace)
	}
	var said []byte
	if err == nil {
		said, err = z.link.receive()
	}
	if err != nil {
		return fmt.Errorf("await first message: %w: %s", err, z.lastWords())
	}
	word, rest, _ := strings.Cut(string(said), " ")
	if word != "ready" {
		return fmt.Errorf("confine: %s", rest)
	}
	z.version = rest
	return nil
}

// rehearsal takes the paths that calls take: a tier counts as obtained when it has run, and the
// zygote's memory has then settled, so that later calls find it alike.
const rehearsal = "open('file', 'w').write('x')\ndef f(): return 1 // 0\ntry: f()\nexcept ZeroDivisionError: print(6 * 7)"

func (z *process) rehearse() error {
	ctx, cancel := context.WithTimeout(context.Background(), startGrace)
	defer cancel()
	for range 2 {
		result, err := z.execute(ctx, sandbox.Call{Code: rehearsal}, sandbox.DefaultLimits, nil)
		if err != nil {
			return fmt.Errorf("rehearse: %w", err)
		}
		if result.Stdout != "42\n" {
			return fmt.Errorf("rehearse: got %s: %s", result.Status, result.Stderr)
		}
	}
	return nil
}

// kill ends the zygote at once; in the tier "full" all its processes end with it.
func (z *process) kill() { _ = z.command.Process.Kill() }

// stop ends the zygote and waits until it is gone.
func (z *process) stop() {
	z.once.Do(func() {
		z.link.close()
		if z.nudge != nil {
			z.nudge.close()
		}
		z.kill()
		select {
		case <-z.exited:
		case <-time.After(stopGrace):
		}
	})
}

// lastWords returns what the zygote wrote to its standard error, for messages.
func (z *process) lastWords() string {
	select {
	case <-z.exited:
	case <-time.After(100 * time.Millisecond):
	}
	return z.log.String()
}

// tail keeps the last bytes of a log.
type tail struct {
	mu    sync.Mutex
	bytes []byte
}

const tailSize = 2048

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, b...)
	t.bytes = t.bytes[max(0, len(t.bytes)-tailSize):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.bytes) == 0 {
		return "it wrote no log"
	}
	return strings.TrimSpace(string(t.bytes))
}
