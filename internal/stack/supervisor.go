package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// supervisor owns the parts and serves leases.
type supervisor struct {
	opts     Options
	layout   layout
	existing existing
	log      *slog.Logger
	spawn    *spawner
	memory   *sampler
	socket   string
	listener *net.UnixListener
	guard    *webGuard // of Temporal's web UI; nil until it is needed
	// inherited holds the ports of a predecessor that was killed.
	inherited []int
	empty     chan struct{} // closed when the last lease has ended; no lease is accepted from then on

	ctx      context.Context // ends when the supervisor begins to stop
	cancel   context.CancelCauseFunc
	starting sync.Mutex // held while parts are started, by one lease at a time

	mu        sync.Mutex
	parts     map[string]*part
	addresses Addresses
	leases    map[*holder]bool
	stopping  bool
	last      *holder // the lease that left last; its command waits for our end
}

// Supervise runs the supervisor until the last lease has ended or the context ends; then it stops every part. The
// hidden supervise subcommand calls it with the options from OptionsFromEnv and a context that ends on SIGTERM and
// SIGINT. Only one supervisor runs per root folder.
func Supervise(ctx context.Context, opts Options) error {
	s, err := newSupervisor(opts)
	if err != nil {
		return err
	}
	// The previous supervisor of this root may still be stopping its parts.
	wait, cancel := context.WithTimeout(ctx, 3*s.opts.tuning.stopTimeout)
	defer cancel()
	alive, err := waitLock(wait, s.layout.aliveLock())
	if err != nil {
		return fmt.Errorf("become the supervisor of %s: %w", s.opts.Root, err)
	}
	defer alive.release()
	s.inherit()
	if err := s.listen(); err != nil {
		return err
	}
	s.log.Info("supervisor started", "pid", os.Getpid(), "socket", s.socket)
	go s.accept()
	go s.memory.run()
	unused := time.AfterFunc(s.opts.tuning.firstLease, s.leaveIfUnused)
	defer unused.Stop()
	select {
	case <-ctx.Done():
		s.log.Info("stopping on request")
		s.tellStopped()
	case <-s.empty:
		s.log.Info("the last lease has ended")
	}
	s.shutdown()
	alive.release() // before the last command, which waits for our end, is told
	s.hangUp()
	return nil
}

func newSupervisor(opts Options) (*supervisor, error) {
	os.Unsetenv(optionsVariable) // not for the worker
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	l := layout{opts.Root}
	if err := l.makeFolders(nil); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	ex, err := findExisting()
	if err != nil {
		return nil, err
	}
	if err := becomeSubreaper(); err != nil {
		return nil, err
	}
	s := &supervisor{opts: opts, layout: l, existing: ex, spawn: newSpawner(),
		log:   slog.New(slog.NewTextHandler(os.Stderr, nil)),
		empty: make(chan struct{}), parts: map[string]*part{}, leases: map[*holder]bool{},
		addresses: ex.addresses(opts)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.memory = newSampler(s.spawn)
	return s, nil
}

// inherit takes the ports of a predecessor that left its state behind: it was killed, and the commands that it served
// join this supervisor and know the servers by their addresses.
func (s *supervisor) inherit() {
	old, err := s.layout.readState()
	if err != nil {
		return // no state, or a damaged one: the ports can be chosen freely
	}
	a := old.Addresses
	if a.UI != "" {
		s.take(&s.opts.Ports.Temporal, a.Temporal)
		s.take(&s.opts.Ports.UI, a.UI)
	}
	if a.S3Folder != "" {
		s.take(&s.opts.Ports.S3, a.S3Endpoint)
	}
	if len(s.inherited) > 0 {
		s.log.Warn("taking over from a supervisor that was killed", "pid", old.PID, "ports", s.inherited)
	}
}

func (s *supervisor) take(want *int, address string) {
	if n := portOf(address); n > 0 {
		*want = n
		s.inherited = append(s.inherited, n)
	}
}

// listen takes the socket. Because we hold the alive lock, an existing socket is stale.
func (s *supervisor) listen() error {
	path, err := s.layout.newSocket()
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen for commands: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("keep the socket private: %w", err)
	}
	s.socket, s.listener = path, l
	return s.recordState()
}

// recordState writes stack.json.
func (s *supervisor) recordState() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := state{PID: os.Getpid(), Socket: s.socket, Addresses: s.addresses, Parts: map[string]int{}}
	for name, p := range s.parts {
		st.Parts[name] = p.processID()
	}
	return s.layout.writeState(st)
}

func (s *supervisor) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			return // closed by shutdown
		}
		h := &holder{wire: newWire(conn), sup: s, pid: peerPID(conn)}
		if !s.add(h) {
			_ = h.wire.send(reply{Kind: "stopping"}) // the command asks again when we have ended
			h.wire.close()
			continue
		}
		go h.serve()
	}
}

// add counts a lease from the time that it connects, so that none is lost between connecting and joining.
func (s *supervisor) add(h *holder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.leases[h] = true
	s.memory.watch(h)
	return true
}

// remove ends a lease. It returns true if the lease was the last one; the supervisor then stops.
func (s *supervisor) remove(h *holder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leases[h] {
		return false
	}
	delete(s.leases, h)
	s.memory.unwatch(h)
	if s.stopIfEmpty() {
		s.last = h
		return true
	}
	return false
}

func (s *supervisor) leaveIfUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopIfEmpty()
}

// stopIfEmpty is called with mu held.
func (s *supervisor) stopIfEmpty() bool {
	if s.stopping || len(s.leases) > 0 {
		return false
	}
	s.stopping = true
	close(s.empty)
	return true
}

// say sends a line to every lease that has asked for parts, and to the log.
func (s *supervisor) say(line string) {
	s.log.Info(line)
	for _, h := range s.holders() {
		_ = h.wire.send(reply{Kind: "progress", Text: line}) // a lost command is noticed by its reader
	}
}

func (s *supervisor) holders() []*holder {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*holder
	for h := range s.leases {
		out = append(out, h)
	}
	return out
}

// tellStopped tells the commands that the stack was stopped on request, so that none starts another.
func (s *supervisor) tellStopped() {
	for _, h := range s.holders() {
		_ = h.wire.send(reply{Kind: "lost", Text: "its supervisor was asked to stop; see " + s.layout.supervisorLog()})
	}
}

// shutdown stops the parts, the worker first, then all descendants that are left.
func (s *supervisor) shutdown() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	// A new command finds no socket, then our lock, and waits until we have ended.
	s.listener.Close()
	s.cancel(errors.New("the supervisor is stopping"))
	s.starting.Lock() // a join in progress fails first
	defer s.starting.Unlock()
	if p := s.part(partWorker); p != nil {
		p.end()
	}
	if s.guard != nil {
		s.guard.close()
	}
	var wg sync.WaitGroup
	for _, name := range []string{partTemporal, partS3} {
		if p := s.part(name); p != nil {
			wg.Go(p.end)
		}
	}
	wg.Wait()
	for range 2 { // the second call reaps what the first killed
		s.spawn.adopt(true)
		time.Sleep(10 * time.Millisecond)
	}
	if err := os.Remove(s.layout.state()); err != nil {
		s.log.Warn("remove stack state", "error", err)
	}
	if folder := filepath.Dir(s.socket); folder != s.layout.root { // made only for the socket
		if err := os.Remove(folder); err != nil {
			s.log.Warn("remove the folder of the stack's socket", "error", err)
		}
	}
	s.log.Info("stopped")
}

// hangUp closes the connections, which tells the commands that the stack has ended.
func (s *supervisor) hangUp() {
	for _, h := range s.holders() {
		h.wire.close()
	}
	if s.last != nil {
		s.last.wire.close()
	}
}

func (s *supervisor) part(name string) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[name]
}
