package session

import (
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/internal/keyed"
	"github.com/ropewalk/ropewalk/sandbox"
)

// Settings bound a pool. A setting of zero means its default.
type Settings struct {
	Most int           // interpreters at once; default 64
	Idle time.Duration // idle time after which an interpreter is closed; default 10 minutes
}

func (s Settings) orDefault() Settings {
	if s.Most <= 0 {
		s.Most = 64
	}
	if s.Idle <= 0 {
		s.Idle = 10 * time.Minute
	}
	return s
}

var errPoolClosed = fmt.Errorf("%w: the pool of sessions is closed", sandbox.ErrInfrastructure)

// Pool holds interpreters by the ids of their trajectories. Safe for concurrent use.
type Pool struct {
	sessions sandbox.Sessions
	seats    keyed.Pool[interpreter]
	life     context.Context // ends with the pool, and ends the cells
	halt     context.CancelCauseFunc
}

// interpreter is what the pool has of one trajectory.
type interpreter struct {
	limits  sandbox.Limits
	session sandbox.Session // nil until the next cell opens it
	ran     []mark          // all cells of the trajectory that have run, here or before this interpreter was opened
	begun   bool            // the interpreter has run a cell
}

// New returns a pool over sessions, which it does not close.
func New(sessions sandbox.Sessions, settings Settings) *Pool {
	settings = settings.orDefault()
	p := &Pool{sessions: sessions}
	p.life, p.halt = context.WithCancelCause(context.Background())
	p.seats = keyed.Pool[interpreter]{Most: settings.Most, Idle: settings.Idle, End: (*interpreter).drop,
		Closed: errPoolClosed}
	return p
}

// drop closes the interpreter, if there is one.
func (k *interpreter) drop() {
	k.begun = false
	if k.session != nil {
		_ = k.session.Close() // it may be the session that has just broken
		k.session = nil
	}
}

// Live returns how many trajectories have a place in the pool.
func (p *Pool) Live() int { return p.seats.Len() }

// End waits for the running cell, then ends the interpreter of a trajectory that runs no further cells.
func (p *Pool) End(ctx context.Context, id string) error { return p.seats.Forget(ctx, id) }

// Close ends running cells and every interpreter. A second call does nothing.
func (p *Pool) Close() error {
	p.halt(errPoolClosed)
	p.seats.Close()
	return nil
}
