package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Settings bound a pool. A setting of zero means its default.
type Settings struct {
	Most   int           // interpreters at once; default 64
	Idle   time.Duration // idle time after which an interpreter is closed; default 10 minutes
	Forget time.Duration // idle time after which a trajectory's cells are forgotten too; default 2 hours
	Replay int           // bytes of cells kept per trajectory; with more, it cannot be replayed; default 16 MiB
}

func (s Settings) orDefault() Settings {
	if s.Most <= 0 {
		s.Most = 64
	}
	if s.Idle <= 0 {
		s.Idle = 10 * time.Minute
	}
	if s.Forget <= 0 {
		s.Forget = 2 * time.Hour
	}
	if s.Replay <= 0 {
		s.Replay = 16 << 20
	}
	return s
}

// Errors about session ids.
var (
	// ErrUnknown means that no session has the id.
	ErrUnknown = fmt.Errorf("%w: no session has this id", sandbox.ErrSessionLost)
	// ErrTaken means that a session with the id already exists.
	ErrTaken = fmt.Errorf("%w: a session has this id already", sandbox.ErrBadCall)
)

var errDropped = fmt.Errorf("%w: it was ended", sandbox.ErrSessionLost)

var errPoolClosed = fmt.Errorf("%w: the pool of sessions is closed", sandbox.ErrInfrastructure)

// Pool holds sessions by id. Safe for concurrent use.
type Pool struct {
	sessions sandbox.Sessions
	settings Settings
	life     context.Context
	halt     context.CancelCauseFunc

	mu      sync.Mutex
	entries map[string]*entry
	places  places
	counts  Counts
}

// Counts say what a pool has done and holds.
type Counts struct {
	Known   int // trajectories
	Live    int // interpreters
	Opened  int // interpreters started, including those for replays
	Replays int // sessions restored by replaying their cells
	Evicted int // interpreters closed because they were idle or others needed their place
	Lost    int // sessions that could not be restored
}

// New returns a pool over sessions, which it does not close.
func New(sessions sandbox.Sessions, settings Settings) *Pool {
	life, halt := context.WithCancelCause(context.Background())
	p := &Pool{sessions: sessions, settings: settings.orDefault(), life: life, halt: halt, entries: map[string]*entry{}}
	p.places = places{most: p.settings.Most, freed: make(chan struct{})}
	return p
}

// Open registers a session. Its interpreter starts with its first cell.
func (p *Pool) Open(id, packages string, limits sandbox.Limits) error {
	if err := (sandbox.Call{Limits: limits}).Validate(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return errPoolClosed
	}
	if p.entries[id] != nil {
		return fmt.Errorf("open session %q: %w", id, ErrTaken)
	}
	k := &entry{id: id, packages: packages, limits: limits, turn: make(chan struct{}, 1)}
	k.life, k.halt = context.WithCancelCause(p.life)
	k.timer = time.AfterFunc(p.settings.Idle+p.settings.Forget, func() { p.idle(k) })
	p.entries[id] = k
	return nil
}

// mostTries bounds how often one cell is tried if its sessions break.
const mostTries = 3

func (p *Pool) find(id string) (*entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return nil, errPoolClosed
	}
	if k := p.entries[id]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("find session %q: %w", id, ErrUnknown)
}

// run needs the session's turn.
func (p *Pool) run(ctx context.Context, k *entry, cell sandbox.Call) (sandbox.Result, error) {
	var faults []error
	killed := false
	for range mostTries {
		if k.over != nil {
			return sandbox.Result{}, k.over
		}
		result, err := p.try(ctx, k, cell)
		switch {
		case err == nil && isKilled(result) && !killed:
			// One signal does not show whether the cell caused it itself or whether the machine, short of memory, or a
			// person sent it. If the cell ends so a second time, in a new interpreter, that counts.
			killed = true
			p.drop(k)
			continue
		case err == nil:
			k.remember(cell, result, p.settings.Replay)
			if ends(result.Status) {
				k.over = fmt.Errorf("%w: its last cell was judged %s", sandbox.ErrSessionEnded, result.Status)
				p.drop(k)
			}
			return result, nil
		case errors.Is(err, sandbox.ErrBadCall):
			return sandbox.Result{}, err
		}
		p.drop(k)
		if errors.Is(err, sandbox.ErrSessionEnded) {
			k.over = err
		}
		if ctx.Err() != nil {
			return sandbox.Result{}, context.Cause(ctx)
		}
		faults = append(faults, err)
	}
	return sandbox.Result{}, fmt.Errorf("%w %d times over: %w", sandbox.ErrSessionLost, mostTries,
		errors.Join(faults...))
}

// try runs the cell once, in the session's interpreter or in a new one.
func (p *Pool) try(ctx context.Context, k *entry, cell sandbox.Call) (sandbox.Result, error) {
	if k.session == nil {
		if err := p.reopen(ctx, k); err != nil {
			return sandbox.Result{}, err
		}
	}
	return k.session.Run(ctx, cell)
}

// ends reports whether a cell with this verdict ended its session. A cell that exits has no status of its own; the
// session reports that at the next cell.
func ends(s sandbox.Status) bool {
	switch s {
	case sandbox.StatusTimeoutWall, sandbox.StatusTimeoutCPU, sandbox.StatusOutOfMemory, sandbox.StatusOutputLimit,
		sandbox.StatusKilled:
		return true
	}
	return false
}

// isKilled reports whether a signal ended an interpreter, which its own code or something outside can have sent.
func isKilled(r sandbox.Result) bool { return r.Status == sandbox.StatusKilled && r.Signal != "" }

func isEnded(err error) bool { return errors.Is(err, sandbox.ErrSessionEnded) }
func isTaken(err error) bool { return errors.Is(err, ErrTaken) }

// End waits for the running cell, then forgets the session and ends its interpreter.
func (p *Pool) End(ctx context.Context, id string) error {
	k, err := p.find(id)
	if err != nil {
		return err
	}
	if err := p.enter(ctx, k); err != nil {
		return err
	}
	defer p.leave(k)
	p.forget(k)
	return nil
}

// Counts returns the current counts.
func (p *Pool) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.Known, c.Live = len(p.entries), p.places.taken
	return c
}

// Close ends running cells and every interpreter. A second call does nothing.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.halt(errPoolClosed)
	var all []*entry
	for _, k := range p.entries {
		all = append(all, k)
	}
	p.mu.Unlock()
	for _, k := range all {
		k.turn <- struct{}{}
		p.forget(k)
		<-k.turn
	}
	return nil
}
