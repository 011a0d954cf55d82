package zygote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

// session is the parent's half of one session.
type session struct {
	mother   *mother
	id       uint64
	packages string
	limits   sandbox.Limits
	conn     *net.UnixConn // to the interpreter
	fd       int           // of conn
	polled   [3]unix.PollFd
	out      [2]*capture   // stdout, stderr
	turn     chan struct{} // holds one while a cell runs
	buffer   []byte        // of the packet that was read
	packet   []byte        // that is sent
	lookout  lookout
	running  *atomic.Int32 // cells of all sessions that run now

	born, dead chan struct{} // closed by the notes

	mu     sync.Mutex
	init   int      // descriptor of the process whose end ends the session; −1 until born
	clock  cpuClock // of the interpreter
	ended  *note    // how the interpreter ended, if that was told
	cause  cause
	over   error // what the next cell gets; nil while the session takes cells
	closed bool
	watch  watch
}

var _ sandbox.Session = (*session)(nil)

// hear takes a note from the mother or the session's init.
func (s *session) hear(word note, fds []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case word.kind == noteBorn && len(fds) == 2 && s.init < 0:
		s.init = fds[0]
		pid, err := pidOf(fds[1])
		unix.Close(fds[1])
		if err == nil {
			s.clock = clockOf(pid)
			close(s.born)
		}
		if s.cause != causeNone || err != nil {
			s.signal()
		}
	case word.kind == noteEnded:
		s.ended = &word
	case word.kind == noteDead:
		// All ends of the socket are closed now; should one be left, it is not waited for.
		s.conn.SetDeadline(time.Now().Add(lingerGrace))
		close(s.dead)
	default:
		closeAll(fds)
	}
}

// kill ends the session; the first cause stands.
func (s *session) kill(why cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == causeNone {
		s.cause = why
		s.signal()
	}
}

func (s *session) overflowed() { s.kill(causeOutput) }

// signal needs the lock.
func (s *session) signal() {
	if s.init >= 0 {
		_ = unix.PidfdSendSignal(s.init, unix.SIGKILL, nil, 0) // it may have ended by itself
	}
}

// awaitStart waits until the interpreter takes cells.
func (s *session) awaitStart(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { s.kill(causeCancel) })()
	s.conn.SetReadDeadline(time.Now().Add(startGrace))
	n, err := s.conn.Read(s.buffer)
	if err != nil {
		return fmt.Errorf("await first word: %w: %s", err, s.mother.log)
	}
	if word := string(s.buffer[:n]); word != "S" {
		return fmt.Errorf("confine: %s", word)
	}
	select {
	case <-s.born:
	case <-s.dead:
		return errMotherGone
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

// await waits until nothing of the session is left; a mother that does not see to it is ended.
func (s *session) await() {
	select {
	case <-s.dead:
		return
	case <-time.After(killGrace):
		s.mother.kill()
	}
	select {
	case <-s.dead:
	case <-time.After(stopGrace): // nothing more can be done; Close of Sessions will wait as long again
	}
}

// bury ends what is left, and has later cells fail with err.
func (s *session) bury(err error) {
	s.kill(causeCancel)
	s.await()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = err
	s.watch.stop()
}

// Close implements sandbox.Session. It ends a cell that runs. Closing twice is well.
func (s *session) Close() error {
	s.kill(causeCancel)
	s.turn <- struct{}{} // the cell that runs gives way
	defer func() { <-s.turn }()
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.bury(errSessionClosed)
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
}
