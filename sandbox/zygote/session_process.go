package zygote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/syscalls"
)

// session is the parent's half of one session.
type session struct {
	server   *forkServer
	id       uint64
	packages string
	limits   sandbox.Limits
	conn     *net.UnixConn // connects to the interpreter
	fd       int           // of conn
	polled   [3]unix.PollFd
	out      [2]*capture   // stdout, stderr
	turn     chan struct{} // holds one while a cell runs
	buffer   []byte        // holds the packet that was read last
	packet   []byte        // holds the packet to send
	spin     spin
	running  *atomic.Int32 // cells running now in all sessions

	started, gone chan struct{} // closed when the note arrives

	mu     sync.Mutex
	init   int      // descriptor of the process whose end ends the session; −1 before noteBorn
	clock  cpuClock // of the interpreter
	ended  *note    // how the interpreter ended, if that was reported
	cause  cause
	over   error // error for the next cell; nil while the session takes cells
	closed bool
	watch  watch
	kills  *syscalls.Kills // signals that the session's code sends; nil if the kernel cannot report them
	pid    int             // of the interpreter
	memory string          // folder of its control group; "" if it has none
	before outOfMemory     // counts of that group before the first cell
}

var _ sandbox.Session = (*session)(nil)

// receive handles a note from the fork server or the session's init.
func (s *session) receive(word note, fds []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case word.kind == noteStarted && (len(fds) == 2 || len(fds) == 3) && s.init < 0:
		s.init = fds[0]
		pid, err := pidOf(fds[1])
		unix.Close(fds[1])
		if len(fds) == 3 {
			var fault error
			s.kills, fault = syscalls.Listen(fds[2], 0)
			err = errors.Join(err, fault)
		}
		if err == nil {
			err = s.joinMemoryGroup(pid)
		}
		if err == nil {
			s.pid, s.clock = pid, clockOf(pid)
			close(s.started)
		}
		if s.cause != causeNone || err != nil {
			s.signal()
		}
	case word.isEnd():
		s.ended = &word
	case word.kind == noteGone:
		// All ends of the socket are closed now. If one is left, do not wait for it.
		s.conn.SetDeadline(time.Now().Add(lingerGrace))
		close(s.gone)
	default:
		closeAll(fds)
	}
}

// joinMemoryGroup moves the session's processes, before they run code of a cell, into a memory group of their own. It
// needs the lock.
func (s *session) joinMemoryGroup(interpreter int) error {
	init, err := pidOf(s.init)
	if err != nil {
		return err
	}
	s.memory = s.server.joined.joinBelow(fmt.Sprintf("session-%d", s.id), sessionMemory(s.limits), init, interpreter)
	s.before = countBefore(s.memory)
	return nil
}

// ranOut reports whether the session has used up the memory of its own group. The fork server's group, which holds all
// sessions, does not count: no single session is at fault there.
func (s *session) ranOut() bool {
	now, err := countOutOfMemory(s.memory)
	return err == nil && now.since(s.before)
}

// mayHaveSent reports whether the code may have sent itself one of the signals. It needs the lock.
func (s *session) mayHaveSent(some syscalls.Signals) bool {
	told := true // the filter refuses all signals
	switch s.server.plan.tier {
	case sandbox.TierFull:
		told = s.kills != nil
	case sandbox.TierRlimits:
		told = filterWorks()
	}
	return !told || s.kills.Requested(some)
}

// ownSignal reports whether the code may have caused the signal that ended the interpreter; if that end was not
// reported, a SIGKILL. It needs the lock.
func (s *session) ownSignal() bool {
	sent := unix.SIGKILL
	if s.ended != nil && s.ended.wait.Signaled() {
		sent = s.ended.wait.Signal()
	}
	return s.mayHaveSent(syscalls.SignalsOf(sent)) || s.ended != nil && s.ended.kind == noteLimit
}

// isStopped reports whether something outside has stopped a process of the session. It needs the lock.
func (s *session) isStopped() bool { return !s.mayHaveSent(syscalls.Stopping) && anyStopped(s.pid) }

// kill ends the session. Only the first cause counts.
func (s *session) kill(why cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == causeNone {
		s.cause = why
		s.signal()
	}
}

func (s *session) overflowed() { s.kill(causeOutput) }

// signal kills the session's init. It needs the lock.
func (s *session) signal() {
	if s.init >= 0 {
		_ = unix.PidfdSendSignal(s.init, unix.SIGKILL, nil, 0) // fails if it has ended by itself
	}
}

// awaitStart waits until the interpreter takes cells.
func (s *session) awaitStart(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { s.kill(causeCancel) })()
	s.conn.SetReadDeadline(time.Now().Add(startGrace))
	n, err := s.conn.Read(s.buffer)
	if err != nil {
		return fmt.Errorf("await first word: %w: %s", err, s.server.log)
	}
	if word := string(s.buffer[:n]); word != "S" {
		return fmt.Errorf("confine: %s", word)
	}
	select {
	case <-s.started:
	case <-s.gone:
		return errServerEnded
	case <-time.After(startGrace):
		return errors.New("the session's init said nothing")
	}
	s.conn.SetReadDeadline(time.Time{})
	if s.watch.base, err = s.clock.read(); err != nil {
		return err
	}
	for _, c := range s.out {
		go c.drain()
	}
	return nil
}

// await waits until all processes of the session have ended. If the fork server does not report that in time, await
// kills it.
func (s *session) await() {
	select {
	case <-s.gone:
		return
	case <-time.After(killGrace):
		s.server.kill()
	}
	select {
	case <-s.gone:
	case <-time.After(stopGrace): // nothing more can be done; Sessions.Close waits for the same time again
	}
}

// finish ends what is left of the session and makes later cells fail with err.
func (s *session) finish(err error) {
	s.kill(causeCancel)
	s.await()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = err
	s.watch.stop()
}

// Close implements sandbox.Session. It ends a running cell. A second call does nothing.
func (s *session) Close() error {
	s.kill(causeCancel)
	s.turn <- struct{}{} // waits for the running cell to end
	defer func() { <-s.turn }()
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.finish(errSessionClosed)
	s.closeFiles()
	return nil
}

var errSessionClosed = fmt.Errorf("%w: it was closed", sandbox.ErrSessionLost)

func (s *session) closeFiles() {
	if s.conn != nil {
		s.conn.Close()
	}
	for _, c := range s.out {
		if c != nil {
			c.file.Close()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.init >= 0 {
		unix.Close(s.init)
		s.init = -1
	}
	s.kills.Close()
	if s.memory != "" {
		groups{{"memory", s.memory}}.remove()
		s.memory = ""
	}
}
