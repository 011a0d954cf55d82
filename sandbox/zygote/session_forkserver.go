package zygote

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/syscalls"
)

//go:embed session.py
var sessionSource string

//go:embed cells.py
var cellsSource string

const serveSessions = `main(SETTINGS, ForkServer)`

// forkServerSettings are the settings of a fork server: those of every zygote, and more.
type forkServerSettings struct {
	settings
	Clone         int    `json:"clone"` // number of the system call
	SessionFilter string `json:"session_filter"`
}

// forkServer is a fork server: a zygote that starts sessions. Safe for concurrent use.
type forkServer struct {
	*process
	conn *net.UnixConn // the link, after its greeting
	done chan struct{} // closed when no more notes will come

	mu       sync.Mutex
	last     uint64 // the last session id
	sessions map[uint64]*session
	running  *atomic.Int32 // cells running now in the sessions of all fork servers
}

// sessionEnvironment keeps Python's own allocator: sessions seldom fork and run for long.
func sessionEnvironment() []string {
	return slices.DeleteFunc(slices.Clone(interpreterEnvironment),
		func(v string) bool { return strings.HasPrefix(v, "PYTHONMALLOC=") })
}

// startForkServer runs plan.startMother on the spawner's thread.
func (s *spawner) startForkServer(p plan, folder string, set PackageSet, running *atomic.Int32) (m *forkServer,
	err error) {
	ready := make(chan struct{})
	s.work <- func() {
		defer close(ready)
		m, err = p.startForkServer(folder, set, running)
	}
	<-ready
	return m, err
}

func (p plan) startForkServer(folder string, set PackageSet, running *atomic.Int32) (*forkServer, error) {
	link, theirs, err := newLink()
	if err != nil {
		return nil, err
	}
	told := forkServerSettings{settings: p.settings(folder, set), Clone: unix.SYS_CLONE}
	if told.Filter != "" {
		full := p.tier == sandbox.TierFull
		told.Filter = syscalls.ForkServerFilter(full, p.tier == sandbox.TierLandlock)
		told.SessionFilter = syscalls.SessionFilter(full)
	}
	script := strings.Join([]string{confineSource, childSource, folderSource, serveSource, cellsSource, sessionSource,
		serveSessions}, "\n")
	m := &forkServer{process: &process{plan: p, set: set.Name, link: link, log: &tail{}, bounds: sessionBounds(),
		exited: make(chan struct{})},
		done: make(chan struct{}), sessions: map[uint64]*session{}, running: running}
	err = m.launchScript(p, told, script, sessionEnvironment(), theirs)
	theirs.Close()
	if err != nil {
		link.close()
		return nil, fmt.Errorf("start %s: %w", p.python.Executable, err)
	}
	err = m.greet()
	if err == nil {
		m.conn, err = polled(link.fd)
	}
	if err != nil {
		m.process.stop()
		return nil, fmt.Errorf("start %s: %w", p.python.Executable, err)
	}
	go m.listen()
	return m, nil
}

// rehearse checks that a session answers. A tier counts as obtained only then.
func (f *forkServer) rehearse() error {
	ctx, cancel := context.WithTimeout(context.Background(), startGrace)
	defer cancel()
	s, err := f.open(ctx, sandbox.DefaultLimits)
	if err != nil {
		return fmt.Errorf("rehearse: %w", err)
	}
	result, err := s.Run(ctx, sandbox.Call{Code: rehearsal})
	if err != nil {
		return fmt.Errorf("rehearse: %w", err)
	}
	if result.Stdout != "42\n" {
		return fmt.Errorf("rehearse: got %s: %s", result.Status, result.Stderr)
	}
	return s.Close()
}

// listen passes each note to its session. When the fork server ends, listen ends all its sessions.
func (f *forkServer) listen() {
	defer f.endSessions()
	buffer, extra := make([]byte, noteSize+1), make([]byte, unix.CmsgSpace(3*4))
	for {
		n, extended, flags, _, err := f.conn.ReadMsgUnix(buffer, extra)
		if err != nil {
			return
		}
		fds := rights(extra[:extended])
		word, err := decodeNote(buffer[:n])
		if err != nil || flags&unix.MSG_CTRUNC != 0 {
			closeAll(fds)
			return
		}
		f.mu.Lock()
		s := f.sessions[word.id]
		if word.kind == noteGone {
			delete(f.sessions, word.id)
		}
		f.mu.Unlock()
		if s == nil {
			closeAll(fds)
			continue
		}
		s.receive(word, fds)
	}
}

func rights(extra []byte) (fds []int) {
	messages, err := unix.ParseSocketControlMessage(extra)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if some, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, some...)
		}
	}
	return fds
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// endSessions tells the remaining sessions that the fork server, and they with it, have ended.
func (f *forkServer) endSessions() {
	f.kill()
	<-f.exited
	f.conn.Close()
	f.mu.Lock()
	left := f.sessions
	f.sessions = nil
	f.mu.Unlock()
	close(f.done)
	for _, s := range left {
		s.receive(note{kind: noteGone, id: s.id}, nil)
	}
}

func (f *forkServer) broken() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// stop ends the fork server and all its sessions, and waits until they have ended.
func (f *forkServer) stop() {
	f.process.stop()
	<-f.done
}

// open starts a session and waits until it takes cells.
func (f *forkServer) open(ctx context.Context, limits sandbox.Limits) (*session, error) {
	s, theirs, err := newSession(f, limits)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, err)
	}
	err = f.register(s, theirs)
	closeAll(theirs)
	if err == nil {
		err = s.awaitStart(ctx)
	}
	if err != nil {
		s.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: open session: %w", sandbox.ErrInfrastructure, err)
	}
	return s, nil
}

var errServerEnded = errors.New("the zygote that makes sessions has ended")

// register assigns an id to a session and asks the fork server to start it.
func (f *forkServer) register(s *session, theirs []int) error {
	f.mu.Lock()
	if f.sessions == nil {
		f.mu.Unlock()
		s.receive(note{kind: noteGone}, nil)
		return errServerEnded
	}
	f.last++
	s.id = f.last
	f.sessions[s.id] = s
	f.mu.Unlock()
	l := s.limits
	o := opening{id: s.id, memory: l.MemoryBytes, file: l.FileBytes, processes: int64(l.Processes),
		room: max(leastRoom, l.FileBytes)}
	if f.plan.tier == sandbox.TierFull {
		o.user = sessionUser()
	}
	if _, _, err := f.conn.WriteMsgUnix(o.encode(), unix.UnixRights(theirs...), nil); err != nil {
		f.kill()
		return fmt.Errorf("ask for session: %w", err)
	}
	return nil
}

// leastRoom is the smallest size of a session's work folder in bytes.
const leastRoom = 16 << 20

// newSession creates the parent's half of a session, and the descriptors for the other half.
func newSession(m *forkServer, limits sandbox.Limits) (s *session, theirs []int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make session: %w", err)
	}
	theirs = []int{pair[1]}
	s = &session{server: m, running: m.running, packages: m.set, limits: limits, turn: make(chan struct{}, 1),
		started: make(chan struct{}), gone: make(chan struct{}), buffer: make([]byte, mostPacket), init: -1}
	defer func() {
		if err != nil {
			closeAll(theirs)
			s.closeFiles()
		}
	}()
	s.conn, err = polled(pair[0])
	unix.Close(pair[0])
	if err == nil {
		s.fd, err = descriptorOf(s.conn)
	}
	for i := 0; i < len(s.out) && err == nil; i++ {
		var ends [2]int
		if ends, err = pipe(); err == nil {
			theirs = append(theirs, ends[1])
			s.out[i], err = newCapture(os.NewFile(uintptr(ends[0]), "output"), limits.OutputBytes, s.overflowed)
		}
	}
	return s, theirs, err
}

// polled returns a connection that the Go runtime polls. It has its own copy of the descriptor.
func polled(fd int) (*net.UnixConn, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("poll socket: %w", err)
	}
	file := os.NewFile(uintptr(own), "session")
	defer file.Close() // FileConn duplicates it
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("poll socket: %w", err)
	}
	return conn.(*net.UnixConn), nil
}

// descriptorOf returns a connection's own descriptor, which is valid until the connection is closed.
func descriptorOf(conn syscall.Conn) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(own uintptr) { fd = int(own) })
	}
	if err != nil {
		return -1, fmt.Errorf("poll: %w", err)
	}
	return fd, nil
}

// pidOf returns the process id behind a process descriptor, as this process's namespace numbers it.
func pidOf(fd int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, fmt.Errorf("find process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		var pid int
		if n, _ := fmt.Sscanf(line, "Pid: %d", &pid); n == 1 && pid > 0 {
			return pid, nil
		}
	}
	return 0, errors.New("find process: it has ended")
}
