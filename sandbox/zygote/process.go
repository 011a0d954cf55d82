package zygote

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	interpreter "github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/syscalls"
)

//go:embed confine.py
var confineSource string

//go:embed child.py
var childSource string

//go:embed folder.py
var folderSource string

//go:embed serve.py
var serveSource string

// serveCalls is the last line of the script of a zygote that runs calls.
const serveCalls = `main(SETTINGS, Zygote)`

const (
	startGrace = 20 * time.Second // for a cold interpreter on a loaded machine
	stopGrace  = 5 * time.Second
	logGrace   = time.Second // for the rest of the log once the zygote has ended
	// unprivileged is the conventional user and group id without rights. Calls run under it if the parent is root; in
	// the tier "full" their user is ownUser.
	unprivileged = 65534
	// inside is the user and group id that calls see in the tier "full".
	inside = 1000
	// mostProcesses bounds the processes and threads of one call, including the zygote.
	mostProcesses = 32
)

// zygoteCapabilities are valid only in the zygote's own namespaces: for mounting, for choosing process ids, and for the
// limit on namespaces. Children give them up.
var zygoteCapabilities = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE}

// settings are passed to a zygote in its script.
type settings struct {
	Link       int          `json:"link"` // descriptor
	Tier       sandbox.Tier `json:"tier"`
	Folder     string       `json:"folder"`
	Filter     string       `json:"filter"` // hexadecimal
	CallFilter string       `json:"call_filter"`
	KillFilter string       `json:"kill_filter"` // "" if other filters refuse all kills, or no filter can be loaded
	Seccomp    int          `json:"seccomp"`     // number of the system call
	Statx      int          `json:"statx"`       // the same
	PivotRoot  int          `json:"pivot_root"`
	Processes  int          `json:"processes"` // −1 means no limit
	Path       []string     `json:"path"`      // folders of installed packages
	Visible    []string     `json:"visible"`   // other folders that calls may read
	Warm       string       `json:"warm"`      // code of the package set
}

// plan says how an executor starts its zygotes.
type plan struct {
	python python
	tier   sandbox.Tier
	sets   sets
	others []Interpreter
	bounds []controller // bounds of the zygotes' control groups
}

// process is one zygote. It serves one call at a time; only the owner of its slot calls execute.
type process struct {
	plan     plan
	set      string // name of its package set
	link     *link
	command  *exec.Cmd
	log      *tail
	version  string // of the interpreter
	calls    uint64
	scratch  [16 << 10]byte  // buffer for reading streams
	wakeup   *wakeup         // wakes the call's goroutine; nil for a fork server
	kills    *syscalls.Kills // signals that its call sends; nil if the kernel cannot report them
	bounds   []controller    // bounds of its control groups
	joined   groups          // its control groups
	last     outOfMemory     // the counts of its memory group at its end; read after exited
	unusable bool            // it has ended, or has to be ended: it must not run more calls
	exited   chan struct{}
	once     sync.Once
}

// start launches a zygote and waits until it is warm and confined. It must run on a thread that outlives the zygote,
// because the kernel kills the zygote when that thread ends.
func (p plan) start(folder string, set PackageSet) (*process, error) {
	link, theirs, err := newLink()
	if err != nil {
		return nil, err
	}
	z := &process{plan: p, set: set.Name, link: link, log: &tail{}, bounds: p.bounds, exited: make(chan struct{})}
	if z.wakeup, err = newWakeup(); err != nil {
		link.close()
		theirs.Close()
		return nil, err
	}
	err = z.launch(p, folder, set, theirs)
	theirs.Close() // so that the link closes when the zygote ends
	if err != nil {
		link.close()
		z.wakeup.close()
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
	script := strings.Join([]string{confineSource, childSource, folderSource, serveSource, serveCalls}, "\n")
	return z.launchScript(p, p.settings(folder, set), script, interpreterEnvironment, link)
}

// launchScript starts an interpreter with a script that finds its settings in SETTINGS.
func (z *process) launchScript(p plan, settings any, script string, environment []string, link *os.File) error {
	told, err := json.Marshal(settings)
	if err == nil {
		told, err = json.Marshal(string(told)) // what is a string of JSON is one of Python
	}
	if err != nil {
		return fmt.Errorf("encode settings: %w", err)
	}
	script = strings.Replace(script, "SETTINGS", "json.loads("+string(told)+")", 1)
	z.command = exec.Command(p.python.Executable, append(interpreterFlags(), "-c")...)
	z.command.ExtraFiles = []*os.File{link}
	run, program, err := interpreter.Attach(z.command, "<zygote>", script)
	if err != nil {
		return err
	}
	defer program.Close()
	z.command.Args = append(z.command.Args, run)
	// This is the interpreter's environment; calls see an empty one.
	z.command.Env = environment
	z.command.Dir = "/"
	z.command.SysProcAttr = p.attributes(z.wakeup == nil)
	// The streams are pipes, so that the interpreter configures them as it will configure those of a call.
	z.command.Stdout, z.command.Stderr = io.MultiWriter(z.log), z.log
	z.command.WaitDelay = logGrace
	if err := z.command.Start(); err != nil {
		return err
	}
	z.joined = join(z.command.Process.Pid, z.bounds, z.wakeup == nil)
	go func() {
		defer close(z.exited)
		_ = z.command.Wait() // the log says how a zygote ended
		if n, err := countOutOfMemory(z.joined.of("memory")); err == nil {
			z.last = n
		}
		z.joined.remove()
	}()
	return nil
}

// interpreterFlags turn off the site module, the user's packages and the writing of compiled files.
func interpreterFlags() []string { return []string{"-S", "-s", "-B"} }

// interpreterEnvironment is the environment of a zygote. Linear algebra uses one thread, because a fork does not copy
// the others. Memory comes from the C library, which asks for huge pages; this makes a fork a quarter to a half faster.
var interpreterEnvironment = []string{"PYTHONHASHSEED=0", "PYTHONUTF8=1", "LC_ALL=C.UTF-8", "LD_BIND_NOW=1",
	"PYTHONMALLOC=malloc", "MALLOC_ARENA_MAX=1", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
	"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"}

// settings returns the settings of a zygote with a work folder and a package set.
func (p plan) settings(folder string, set PackageSet) settings {
	s := settings{Link: 3, Tier: p.tier, Folder: folder, Filter: syscalls.ZygoteFilter(p.tier == sandbox.TierFull),
		CallFilter: syscalls.CallFilter(),
		Seccomp:    unix.SYS_SECCOMP, Statx: unix.SYS_STATX, PivotRoot: unix.SYS_PIVOT_ROOT, Processes: -1,
		Path: p.python.Path, Visible: p.python.Path, Warm: set.Warm}
	if p.tier == sandbox.TierFull {
		s.CallFilter, s.KillFilter, s.Processes = "", syscalls.KillFilter(), mostProcesses
	}
	if p.tier == sandbox.TierRlimits && !filterWorks() {
		s.Filter, s.CallFilter = "", ""
	}
	return s
}

// filterWorks reports whether the kernel supports seccomp filters that refuse with an error.
func filterWorks() bool {
	const actionAvailable = 2 // SECCOMP_GET_ACTION_AVAIL
	action := uint32(unix.SECCOMP_RET_ERRNO)
	return seccomp(actionAvailable, &action) == nil
}

// attributes returns how to start a zygote, or a fork server. If this process is root, calls run as another user in
// every tier.
func (p plan) attributes(forkServer bool) *syscall.SysProcAttr {
	root := os.Geteuid() == 0
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.tier != sandbox.TierFull {
		if root {
			a.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
		}
		return a
	}
	user, group := os.Geteuid(), os.Getegid()
	if root {
		user, group = ownUser(), unprivileged
	}
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWNS
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: user, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: group, Size: 1}}
	a.GidMappingsEnableSetgroups = root
	a.Credential = &syscall.Credential{Uid: inside, Gid: inside, NoSetGroups: !root}
	a.AmbientCaps = zygoteCapabilities
	if first := rangeOfUsers(); forkServer && first != 0 {
		a.UidMappings = append(a.UidMappings,
			syscall.SysProcIDMap{ContainerID: insideSessions, HostID: first + perParent, Size: perParent})
		a.AmbientCaps = append(slices.Clone(zygoteCapabilities), unix.CAP_SETUID)
	}
	return a
}

// greet reads the zygote's first message, and before it the descriptor that reports kills, if one comes.
func (z *process) greet() error {
	watched := []unix.PollFd{{Fd: int32(z.link.fd), Events: unix.POLLIN}}
	for {
		var ready int
		err := onEINTR(func() (err error) {
			ready, err = unix.Poll(watched, milliseconds(startGrace))
			return err
		})
		if err == nil && ready == 0 {
			err = fmt.Errorf("it took more than %s", startGrace)
		}
		var said string
		var fds []int
		if err == nil {
			said, fds, err = z.link.receiveWith()
		}
		if err == nil && said == "kills" && len(fds) == 1 && z.kills == nil {
			if z.kills, err = syscalls.Listen(fds[0], z.command.Process.Pid); err != nil {
				return err
			}
			continue
		}
		closeAll(fds)
		if err != nil {
			return fmt.Errorf("await first message: %w: %s", err, z.lastWords())
		}
		word, rest, _ := strings.Cut(said, " ")
		if word != "ready" {
			return fmt.Errorf("confine: %s", rest)
		}
		z.version = rest
		return nil
	}
}

// tellsKills reports whether a signal that the code sends itself can be told from others: either such signals are
// reported, or the filter refuses all of them.
func (z *process) tellsKills() bool {
	switch z.plan.tier {
	case sandbox.TierFull:
		return z.kills != nil
	case sandbox.TierLandlock:
		return true
	default:
		return filterWorks()
	}
}

// rehearsal runs the code paths that calls use. A tier counts as obtained only after it has run. It also lets the
// zygote's memory settle, so that all later calls find the same state.
const rehearsal = "open('file', 'w').write('x')\ndef f(): return 1 // 0\ntry: f()\n" +
	"except ZeroDivisionError: print(6 * 7)"

// rehearse runs the rehearsal twice and checks its output.
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

// ranOut reports whether the zygote's group, which contains only one call, has run out of memory since an earlier
// count.
func (z *process) ranOut(before outOfMemory) bool {
	now, err := countOutOfMemory(z.joined.of("memory"))
	if err != nil { // the group was removed when its zygote ended
		select {
		case <-z.exited:
			now = z.last
		case <-time.After(stopGrace):
		}
	}
	return now.since(before)
}

// kill kills the zygote. In the tier "full" all its processes end with it.
func (z *process) kill() {
	_ = z.command.Process.Kill()
	z.thaw()
}

// freezer returns the zygote's control group that can be frozen.
func (z *process) freezer() freezer { return freezer(z.joined.of("freezer")) }

// thaw lets frozen processes run again, so that a pending kill takes effect. It fails harmlessly if the group has been
// removed.
func (z *process) thaw() {
	if group := z.freezer(); group != "" {
		_ = group.thaw()
	}
}

// stop ends the zygote and waits until it has ended.
func (z *process) stop() {
	z.once.Do(func() {
		z.link.close()
		if z.wakeup != nil {
			z.wakeup.close()
		}
		z.kill()
		z.kills.Close()
		select {
		case <-z.exited:
		case <-time.After(stopGrace):
		}
	})
}

// lastWords returns the end of the zygote's log, for error messages.
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

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, b...)
	t.bytes = t.bytes[max(0, len(t.bytes)-tailSize):]
	return len(b), nil
}

// String returns the end of the log.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.bytes) == 0 {
		return "it wrote no log"
	}
	return strings.TrimSpace(string(t.bytes))
}
