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
	empty    chan struct{} // closed when the last lease has gone; no lease is accepted from then on

	ctx      context.Context // ends when the supervisor begins to stop
	cancel   context.CancelCauseFunc
	starting sync.Mutex // held while parts are started: one lease at a time does it

	mu        sync.Mutex
	parts     map[string]*part
	addresses Addresses
	leases    map[*holder]bool
	stopping  bool
	last      *holder // the lease that left last; its command waits for our end
}

// Supervise runs the supervisor until the last lease has gone or the context ends; then it stops
// every part. The hidden supervise subcommand calls it with OptionsFromEnv's options, its context
// ending on SIGTERM and SIGINT. Only one runs per root folder.
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
	case <-s.empty:
		s.log.Info("the last lease has gone")
	}
	s.shutdown()
	return nil
}

func newSupervisor(opts Options) (*supervisor, error) {
	os.Unsetenv(optionsVariable) // not for the worker
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	l := layout{opts.Root}
	if err := l.makeFolders(); err != nil {
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

// listen takes the socket; holding the alive lock, whatever lies there is stale.
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
			_ = h.wire.send(reply{Kind: "stopping"}) // the command asks again when we are gone
			h.wire.close()
			continue
		}
		go h.serve()
	}
}

// add counts a lease from its connection on, so that none is lost between connecting and joining.
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

// remove ends a lease; true if it was the last, after which the supervisor stops.
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

// say tells every lease that has asked for parts, and the log.
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

// shutdown stops the parts, worker first, then whatever descendants are left.
func (s *supervisor) shutdown() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	// A new command finds no socket, then our lock, and waits until we are gone.
	s.listener.Close()
	s.cancel(errors.New("the supervisor is stopping"))
	s.starting.Lock() // a join that is under way fails first
	defer s.starting.Unlock()
	if p := s.part(partWorker); p != nil {
		p.end()
	}
	var wg sync.WaitGroup
	for _, name := range []string{partTemporal, partS3} {
		if p := s.part(name); p != nil {
			wg.Go(p.end)
		}
	}
	wg.Wait()
	for range 2 { // the second call buries what the first killed
		s.spawn.adopt(true)
		time.Sleep(10 * time.Millisecond)
	}
	if err := os.Remove(s.layout.state()); err != nil {
		s.log.Warn("remove stack state", "error", err)
	}
	if folder := filepath.Dir(s.socket); folder != s.layout.root { // made for the socket alone
		if err := os.Remove(folder); err != nil {
			s.log.Warn("remove the folder of the stack's socket", "error", err)
		}
	}
	s.log.Info("stopped")
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
