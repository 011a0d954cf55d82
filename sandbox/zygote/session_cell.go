package zygote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

// mostPacket is the size of the largest packet that an interpreter sends.
const mostPacket = 48 << 10

// Run implements sandbox.Session. Cells run one at a time; a cell that arrives while another runs has to wait. A cell's
// limits of CPU, wall and output apply if they are below the session's. If ctx ends while the cell runs, the session is
// lost.
func (s *session) Run(ctx context.Context, cell sandbox.Call) (sandbox.Result, error) {
	limits, err := s.accept(cell)
	if err != nil {
		return sandbox.Result{}, err
	}
	arrived := time.Now()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return sandbox.Result{}, context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	if err := s.check(); err != nil {
		return sandbox.Result{}, err
	}
	queued := time.Since(arrived)
	result, err := s.run(ctx, cell, limits)
	result.Timing.Queue = queued
	return result, err
}

// accept returns the limits that the cell runs under. It fails if the cell asks for something that its session does not
// have.
func (s *session) accept(cell sandbox.Call) (sandbox.Limits, error) {
	limits, own := s.limits, cell.Limits
	if err := cell.Validate(); err != nil {
		return limits, err
	}
	bad := func(what string, got, want any) (sandbox.Limits, error) {
		return limits, fmt.Errorf("%w: %s of the cell is %v, of its session %v", sandbox.ErrBadCall, what, got, want)
	}
	switch {
	case cell.Language != "" && cell.Language != sandbox.Python:
		return bad("language", cell.Language, sandbox.Python)
	case cell.Packages != "" && cell.Packages != s.packages:
		return bad("packages", cell.Packages, s.packages)
	case own.MemoryBytes != 0 && own.MemoryBytes != limits.MemoryBytes:
		return bad("limits.memory", own.MemoryBytes, limits.MemoryBytes)
	case own.FileBytes != 0 && own.FileBytes != limits.FileBytes:
		return bad("limits.file", own.FileBytes, limits.FileBytes)
	case own.Processes != 0 && own.Processes != limits.Processes:
		return bad("limits.processes", own.Processes, limits.Processes)
	}
	if own.CPU != 0 {
		limits.CPU = min(limits.CPU, own.CPU)
	}
	if own.Wall != 0 {
		limits.Wall = min(limits.Wall, own.Wall)
	}
	if own.OutputBytes != 0 {
		limits.OutputBytes = min(limits.OutputBytes, own.OutputBytes)
	}
	return limits, nil
}

// check returns the reason why the session takes no more cells, or nil. A session that ended between cells ended
// itself, with these exceptions: its fork server or its init ended before its interpreter, or the interpreter got a
// signal from outside. The session then counts as lost, and its cells can be replayed.
func (s *session) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return s.over
	}
	switch {
	case s.cause == causeCPU, s.cause == causeOutput, s.cause == causeForged,
		s.ended != nil && !fromOutside(&s.ended.wait):
		return fmt.Errorf("%w between cells", sandbox.ErrSessionEnded)
	case s.cause == causeNone && s.ended != nil && s.ownSignal(), s.cause == causeNone && s.isGone() && s.ranOut():
		return fmt.Errorf("%w between cells", sandbox.ErrSessionEnded)
	case s.ended != nil && s.cause == causeNone:
		return fmt.Errorf("%w: its process was killed", sandbox.ErrSessionLost)
	}
	select {
	case <-s.gone:
		return fmt.Errorf("%w: %w", sandbox.ErrSessionLost, errServerEnded)
	default:
	}
	if s.cause != causeNone {
		return fmt.Errorf("%w: its context has ended", sandbox.ErrSessionLost)
	}
	return nil
}

// isGone reports whether all processes of the session have ended.
func (s *session) isGone() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// run sends the cell and returns its result.
func (s *session) run(ctx context.Context, cell sandbox.Call, limits sandbox.Limits) (sandbox.Result, error) {
	for _, c := range s.out {
		c.begin(limits.OutputBytes)
	}
	nonce := rand.Uint64()
	s.spin.few = s.running.Add(1) <= fewCells
	defer s.running.Add(-1)
	s.beginCell(limits)
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { s.kill(causeCancel) })()
	}
	var e ending
	err := s.send(nonce, cell)
	if errors.Is(err, errUnsent) {
		s.endCell()
		s.finish(fmt.Errorf("%w: %w", sandbox.ErrSessionLost, err))
		return sandbox.Result{}, fmt.Errorf("%w: %w", sandbox.ErrSessionLost, err)
	}
	if errors.Is(err, unix.EPIPE) {
		s.endCell()
		return sandbox.Result{}, s.cellUnread()
	}
	if err == nil {
		e, err = s.readAnswer(nonce, limits, cell)
	}
	wall, cpu := s.endCell()
	if err != nil || e.cause != causeNone || e.kind == cellMemory || s.isKilled() {
		return s.endWithVerdict(ctx, e, wall, cpu)
	}
	e.stdout, e.stderr = s.out[0].take(e.silent), s.out[1].take(e.silent)
	if e.stdout.overflow || e.stderr.overflow {
		return s.endWithVerdict(ctx, e, wall, cpu)
	}
	result, _ := e.verdict()
	result.Timing = sandbox.Timing{Wall: wall, CPU: cpu, PeakMemory: e.peak}
	return result, nil
}

func (s *session) isKilled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause != causeNone
}

// errUnsent: this process could not create the cell's packet. Neither the cell nor its interpreter is to blame.
var errUnsent = errors.New("cell could not be sent")

// send sends the cell to the interpreter. Errors other than errUnsent mean that the interpreter no longer reads.
func (s *session) send(nonce uint64, cell sandbox.Call) error {
	var flags byte
	if s.spin.few {
		flags = cellSpin
	}
	packet, fds, err := encodeCell(s.packet, nonce, flags, cell)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	s.packet = packet
	_, err = s.conn.Write(packet)
	if err == nil && fds != nil {
		_, _, err = s.conn.WriteMsgUnix([]byte{'d'}, unix.UnixRights(fds...), nil)
	}
	closeAll(fds)
	if err != nil {
		return fmt.Errorf("send cell: %w", err)
	}
	return nil
}

// readAnswer reads packets up to the one that ends the cell. An error means that no more packets will come. A packet of
// another cell or of unknown form is forged; the session that sends one is ended.
func (s *session) readAnswer(nonce uint64, limits sandbox.Limits, cell sandbox.Call) (ending, error) {
	var e ending
	if s.spin.few {
		e.silent = s.pollFirst()
	}
	files := receivedFiles{wanted: cell.Collect}
	for {
		n, err := s.conn.Read(s.buffer)
		if err != nil {
			return e, fmt.Errorf("await answer: %w", err)
		}
		p, err := decodePacket(s.buffer[:n])
		if err != nil || p.nonce != nonce {
			e.cause = causeForged
			return e, nil
		}
		piece := p.body
		if p.kind == packetEnd {
			e.kind, e.peak, piece, e.answered = decodeEnd(p.body)
		}
		switch {
		case p.kind == packetText, e.answered:
			room := limits.OutputBytes - len(e.text)
			e.text = append(e.text, piece[:min(room, len(piece))]...)
			if len(piece) > room {
				e.tooLong, e.cause = true, causeOutput
				return e, nil
			}
		case p.kind == packetFile && len(p.body) >= 4:
			e.cause = files.receive(int(binary.NativeEndian.Uint32(p.body)), p.body[4:])
		default:
			e.cause = causeForged
		}
		if e.cause != causeNone {
			return e, nil
		}
		if e.answered {
			e.silent = e.silent || s.pipesEmpty()
			e.files = files.list()
			return e, nil
		}
	}
}

// shortCell is how long a thread itself waits for an answer, which is cheaper than a wait in the Go runtime.
const shortCell = time.Millisecond

// pollFirst waits for the first packet of a short cell and reports whether the pipes were empty when it arrived. The
// socket is first in the list because the kernel checks it first: it then also sees output that was written before the
// packet.
func (s *session) pollFirst() (silent bool) {
	for i, fd := range []int{s.fd, s.out[0].fd, s.out[1].fd} {
		s.polled[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	n, err := 0, error(nil)
	if s.spin.due() {
		for began := time.Now(); n == 0 && err == nil && time.Since(began) < spinTime; {
			n, err = unix.Poll(s.polled[:], 0)
		}
		s.spin.learn(n > 0)
	}
	if n == 0 && err == nil {
		n, err = unix.Poll(s.polled[:], int(shortCell/time.Millisecond))
	}
	return err == nil && n == 1 && s.polled[0].Revents == unix.POLLIN
}

// pipesEmpty reports, once an answer has arrived, whether nothing was written before it.
func (s *session) pipesEmpty() bool {
	for i, c := range s.out {
		s.polled[i] = unix.PollFd{Fd: int32(c.fd), Events: unix.POLLIN}
	}
	n, err := unix.Poll(s.polled[:len(s.out)], 0)
	return err == nil && n == 0
}

// cellUnread ends a session whose interpreter closed its socket before it read a cell, and returns why the session
// takes no cells.
func (s *session) cellUnread() error {
	if s.lingers() {
		s.kill(causeForged)
	}
	s.await()
	err := s.check()
	if err == nil { // its end was not reported
		err = fmt.Errorf("%w: %w", sandbox.ErrSessionLost, errServerEnded)
	}
	s.finish(err)
	return err
}

// endWithVerdict ends a session whose cell broke its limits, its interpreter or the protocol, and returns the verdict
// on that cell.
func (s *session) endWithVerdict(ctx context.Context, e ending, wall, cpu time.Duration) (sandbox.Result, error) {
	switch {
	case e.cause != causeNone:
		s.kill(e.cause)
	case e.answered || s.lingers(): // too much output, no memory left, or the socket was closed
		s.kill(causeForged)
	}
	s.await()
	s.mu.Lock()
	e.gone, e.cause, e.own, e.memory = true, s.cause, s.ownSignal(), s.cause == causeNone && s.ranOut()
	if s.ended != nil {
		e.wait, e.peak = &s.ended.wait, s.ended.peak
		cpu = max(cpu, s.ended.cpu-s.watch.base)
	}
	s.mu.Unlock()
	if !e.stdout.overflow && !e.stderr.overflow {
		e.stdout, e.stderr = s.out[0].take(false), s.out[1].take(false)
	}
	result, judged := e.verdict()
	switch {
	case e.cause == causeCancel && !judged:
		err := context.Cause(ctx)
		if err == nil {
			err = errSessionClosed
		}
		s.finish(fmt.Errorf("%w: its context ended while a cell ran", sandbox.ErrSessionLost))
		return sandbox.Result{}, err
	case !judged:
		s.finish(sandbox.ErrSessionLost)
		return sandbox.Result{}, fmt.Errorf("%w: its process was killed from outside: %s", sandbox.ErrSessionLost,
			s.server.log)
	}
	s.finish(fmt.Errorf("%w: its last cell was judged %s", sandbox.ErrSessionEnded, result.Status))
	result.Timing = sandbox.Timing{Wall: wall, CPU: cpu, PeakMemory: e.peak}
	return result, nil
}

// lingerGrace bounds the wait for an interpreter that has closed its socket.
const lingerGrace = time.Second

// lingers waits for an interpreter whose socket is closed to end by itself, so that its exit decides the verdict. It
// reports whether the interpreter did not end.
func (s *session) lingers() bool {
	select {
	case <-s.gone:
		return false
	case <-time.After(lingerGrace):
		return true
	}
}
