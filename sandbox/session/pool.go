package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Settings bound a pool. What is zero takes its default.
type Settings struct {
	Most   int           // interpreters at once; default 64
	Idle   time.Duration // after which an interpreter is taken away; default 10 minutes
	Forget time.Duration // after which an idle trajectory's cells are forgotten too; default 2 hours
	Replay int           // bytes of cells kept for each trajectory; one with more is not made anew; default 16 MiB
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

// Errors of ids.
var (
	ErrUnknown = fmt.Errorf("%w: no session has this id", sandbox.ErrSessionLost)
	ErrTaken   = fmt.Errorf("%w: a session has this id already", sandbox.ErrBadCall)
)

var errDropped = fmt.Errorf("%w: it was ended", sandbox.ErrSessionLost)

var errPoolClosed = fmt.Errorf("%w: the pool of sessions is closed", sandbox.ErrInfrastructure)

// Pool holds sessions by id. Safe for concurrent use.
type Pool struct {
	sessions sandbox.Sessions
	settings Settings
	life     context.Context
	halt     context.CancelCauseFunc

	mu     sync.Mutex
	kept   map[string]*kept
	places places
	counts Counts
}

// Counts tell what a pool has done and holds.
type Counts struct {
	Known   int // trajectories
	Live    int // interpreters
	Opened  int // interpreters, the ones made anew included
	Replays int // sessions made anew
	Evicted int // interpreters taken away, idle or for others
	Lost    int // sessions that could not be made anew
}

// New returns a pool over sessions, which it does not close.
func New(sessions sandbox.Sessions, settings Settings) *Pool {
	life, halt := context.WithCancelCause(context.Background())
	p := &Pool{sessions: sessions, settings: settings.orDefault(), life: life, halt: halt, kept: map[string]*kept{}}
	p.places = places{most: p.settings.Most, freed: make(chan struct{})}
	return p
}

// Open makes a session known. Its interpreter starts with its first cell.
func (p *Pool) Open(id, packages string, limits sandbox.Limits) error {
	if err := (sandbox.Call{Limits: limits}).Validate(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return errPoolClosed
	}
	if p.kept[id] != nil {
		return fmt.Errorf("open session %q: %w", id, ErrTaken)
	}
	k := &kept{id: id, packages: packages, limits: limits, turn: make(chan struct{}, 1)}
	k.life, k.halt = context.WithCancelCause(p.life)
	k.timer = time.AfterFunc(p.settings.Idle+p.settings.Forget, func() { p.idle(k) })
	p.kept[id] = k
	return nil
}

// Start makes a session known and starts its interpreter: an error says why there is none.
func (p *Pool) Start(ctx context.Context, id, packages string, limits sandbox.Limits) error {
	if err := p.Open(id, packages, limits); err != nil {
		return err
	}
	k, err := p.turnOf(ctx, id)
	if err != nil {
		return err
	}
	defer p.leave(k)
	if k.session != nil || k.over != nil {
		return nil // somebody was quicker
	}
	err = p.revive(ctx, k)
	if err != nil {
		p.forget(k)
	}
	return err
}

// turnOf waits for the turn of a session, which leave gives back.
func (p *Pool) turnOf(ctx context.Context, id string) (*kept, error) {
	k, err := p.find(id)
	if err != nil {
		return nil, err
	}
	return k, p.enter(ctx, k)
}

// mostTries bounds how often one cell is tried on sessions that break.
const mostTries = 3

// Run runs one cell of a session; cells of one session run one at a time, and one that comes while another runs waits.
// A cell whose session is lost is run again in the session made anew, unless ctx has ended.
func (p *Pool) Run(ctx context.Context, id string, cell sandbox.Call) (sandbox.Result, error) {
	k, err := p.find(id)
	if err != nil {
		return sandbox.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(k.life, func() { cancel(context.Cause(k.life)) })()
	if err := p.enter(ctx, k); err != nil {
		return sandbox.Result{}, err
	}
	defer p.leave(k)
	result, err := p.run(ctx, k, cell)
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("run cell of session %q: %w", id, err)
	}
	return result, nil
}

func (p *Pool) find(id string) (*kept, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return nil, errPoolClosed
	}
	if k := p.kept[id]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("find session %q: %w", id, ErrUnknown)
}

// run needs the session's turn.
func (p *Pool) run(ctx context.Context, k *kept, cell sandbox.Call) (sandbox.Result, error) {
	var faults []error
	killed := false
	for range mostTries {
		if k.over != nil {
			return sandbox.Result{}, k.over
		}
		result, err := p.try(ctx, k, cell)
		switch {
		case err == nil && isKilled(result) && !killed:
			// One end does not tell whether the cell came to it by itself or the machine short of memory, or a
			// person, killed it. The second one, in an interpreter made anew, counts.
			killed = true
			p.drop(k)
			continue
		case err == nil:
			k.keep(cell, result, p.settings.Replay)
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
	return sandbox.Result{}, fmt.Errorf("%w %d times over: %w", sandbox.ErrSessionLost, mostTries, errors.Join(faults...))
}

// try runs the cell once, in the interpreter that is there or in a new one.
func (p *Pool) try(ctx context.Context, k *kept, cell sandbox.Call) (sandbox.Result, error) {
	if k.session == nil {
		if err := p.revive(ctx, k); err != nil {
			return sandbox.Result{}, err
		}
	}
	return k.session.Run(ctx, cell)
}

// ends reports whether a cell with this verdict ended its session. A cell that exits has no status of its own;
// the session says so at the next cell.
func ends(s sandbox.Status) bool {
	switch s {
	case sandbox.StatusTimeoutWall, sandbox.StatusTimeoutCPU, sandbox.StatusOutOfMemory, sandbox.StatusOutputLimit, sandbox.StatusKilled:
		return true
	}
	return false
}

// isKilled reports whether an interpreter got a signal that nobody but its own code, or somebody outside, can have sent.
func isKilled(r sandbox.Result) bool {
	return r.Status == sandbox.StatusKilled && r.Signal == "SIGKILL"
}

func isEnded(err error) bool { return errors.Is(err, sandbox.ErrSessionEnded) }
func isTaken(err error) bool { return errors.Is(err, ErrTaken) }

// End forgets a session and ends its interpreter, after the cell that runs.
func (p *Pool) End(ctx context.Context, id string) error {
	k, err := p.turnOf(ctx, id)
	if err != nil {
		return err
	}
	defer p.leave(k)
	p.forget(k)
	return nil
}

// Drop is End that also ends the cell that runs.
func (p *Pool) Drop(ctx context.Context, id string) error {
	k, err := p.find(id)
	if err != nil {
		return err
	}
	k.halt(errDropped)
	if err := p.End(ctx, id); err != nil && !errors.Is(err, ErrUnknown) { // somebody was quicker
		return err
	}
	return nil
}

// Counts returns the counts of now.
func (p *Pool) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.Known, c.Live = len(p.kept), p.places.taken
	return c
}

// Close ends the cells that run and every interpreter. Closing twice is well.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.halt(errPoolClosed)
	var all []*kept
	for _, k := range p.kept {
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
