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

	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

//go:embed session.py
var sessionSource string

//go:embed cells.py
var cellsSource string

const serveSessions = `main(json.loads(sys.argv.pop()), Mother)`

// motherSettings is what a mother is told beyond what every zygote is.
type motherSettings struct {
	settings
	Clone         int    `json:"clone"` // number of the system call
	SessionFilter string `json:"session_filter"`
}

// mother is a zygote that makes sessions. Safe for concurrent use.
type mother struct {
	*process
	conn *net.UnixConn // the link, once she has greeted
	done chan struct{} // closed when no note will come any more

	mu       sync.Mutex
	last     uint64 // id
	sessions map[uint64]*session
	running  *atomic.Int32 // cells of all mothers' sessions that run now
}

// sessionEnvironment leaves Python its own allocator: sessions fork seldom and run long.
func sessionEnvironment() []string {
	return slices.DeleteFunc(slices.Clone(interpreterEnvironment), func(v string) bool { return strings.HasPrefix(v, "PYTHONMALLOC=") })
}

// startMother runs plan.startMother on the spawner's thread.
func (s *spawner) startMother(p plan, folder string, set PackageSet, running *atomic.Int32) (m *mother, err error) {
	ready := make(chan struct{})
	s.work <- func() {
		defer close(ready)
		m, err = p.startMother(folder, set, running)
	}
	<-ready
	return m, err
}

func (p plan) startMother(folder string, set PackageSet, running *atomic.Int32) (*mother, error) {
	link, theirs, err := newLink()
	if err != nil {
		return nil, err
	}
	told := motherSettings{settings: p.settings(folder, set), Clone: unix.SYS_CLONE}
	if told.Filter != "" {
		told.Filter, told.SessionFilter = motherFilter(p.tier), sessionFilter(p.tier)
	}
	script := strings.Join([]string{confineSource, childSource, serveSource, cellsSource, sessionSource, serveSessions}, "\n")
	m := &mother{process: &process{plan: p, set: set.Name, link: link, log: &tail{}, bounds: sessionBounds(), exited: make(chan struct{})},
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

// rehearse has a session answer: a tier counts as obtained when it has.
func (m *mother) rehearse() error {
	ctx, cancel := context.WithTimeout(context.Background(), startGrace)
	defer cancel()
	s, err := m.open(ctx, sandbox.DefaultLimits)
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

// listen gives each note to its session, and ends them all when the mother does.
func (m *mother) listen() {
	defer m.bereave()
	buffer, extra := make([]byte, noteSize+1), make([]byte, unix.CmsgSpace(2*4))
	for {
		n, extended, flags, _, err := m.conn.ReadMsgUnix(buffer, extra)
		if err != nil {
			return
		}
		fds := rights(extra[:extended])
		word, err := decodeNote(buffer[:n])
		if err != nil || flags&unix.MSG_CTRUNC != 0 {
			closeAll(fds)
			return
		}
		m.mu.Lock()
		s := m.sessions[word.id]
		if word.kind == noteDead {
			delete(m.sessions, word.id)
		}
		m.mu.Unlock()
		if s == nil {
			closeAll(fds)
			continue
		}
		s.hear(word, fds)
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

// bereave tells the sessions that are left that their mother is gone, and they with her.
func (m *mother) bereave() {
	m.kill()
	<-m.exited
	m.conn.Close()
	m.mu.Lock()
	left := m.sessions
	m.sessions = nil
	m.mu.Unlock()
	close(m.done)
	for _, s := range left {
		s.hear(note{kind: noteDead, id: s.id}, nil)
	}
}

func (m *mother) broken() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// stop ends the mother and all her sessions, and waits until they are gone.
func (m *mother) stop() {
	m.process.stop()
	<-m.done
}

// open makes a session and waits until it takes cells.
func (m *mother) open(ctx context.Context, limits sandbox.Limits) (*session, error) {
	s, theirs, err := newSession(m, limits)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, err)
	}
	err = m.adopt(s, theirs)
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

var errMotherGone = errors.New("the zygote that makes sessions has ended")

// adopt numbers a session and asks the mother for it.
func (m *mother) adopt(s *session, theirs []int) error {
	m.mu.Lock()
	if m.sessions == nil {
		m.mu.Unlock()
		s.hear(note{kind: noteDead}, nil)
		return errMotherGone
	}
	m.last++
	s.id = m.last
	m.sessions[s.id] = s
	m.mu.Unlock()
	l := s.limits
	o := opening{id: s.id, memory: l.MemoryBytes, file: l.FileBytes, processes: int64(l.Processes), room: max(leastRoom, l.FileBytes)}
	if _, _, err := m.conn.WriteMsgUnix(o.encode(), unix.UnixRights(theirs...), nil); err != nil {
		m.kill()
		return fmt.Errorf("ask for session: %w", err)
	}
	return nil
}

// leastRoom is the least size of a session's work folder in bytes.
const leastRoom = 16 << 20

// newSession makes the parent's half of a session, and the descriptors of the other half.
func newSession(m *mother, limits sandbox.Limits) (s *session, theirs []int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make session: %w", err)
	}
	theirs = []int{pair[1]}
	s = &session{mother: m, running: m.running, packages: m.set, limits: limits, turn: make(chan struct{}, 1),
		born: make(chan struct{}), dead: make(chan struct{}), buffer: make([]byte, mostPacket), init: -1}
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

// polled returns a connection, of a descriptor of its own, that the runtime polls.
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

// descriptorOf returns a connection's own descriptor, good until it is closed.
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

// pidOf returns the process id, in this process's namespace, behind a process descriptor.
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
