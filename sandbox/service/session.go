package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
)

// errNoSession means that no session has the id.
var errNoSession = fmt.Errorf("%w: no session has this id", sandbox.ErrSessionLost)

// errManySessions means that the service has as many sessions as it may.
var errManySessions = errors.New("this service has reached its limit of sessions")

// sessionTable holds the sessions that HTTP requests name by id, and counts those of streams. If an interpreter is
// lost, its session is restored under the same id by running its cells again. If they then have other results, the
// session is lost for good.
type sessionTable struct {
	make sandbox.Sessions
	pool *session.Pool // the sessions with ids
	most int
	idle time.Duration

	mu   sync.Mutex
	of   map[string]*heldSession
	open int // includes the sessions of streams
}

type heldSession struct {
	busy int
	used time.Time
}

func newSessionTable(maker sandbox.Sessions, most int, idle time.Duration) *sessionTable {
	// the table ends sessions before the pool does
	settings := session.Settings{Most: most, Idle: 2 * idle, Forget: 2 * idle}
	return &sessionTable{make: maker, pool: session.New(maker, settings), most: most, idle: idle,
		of: map[string]*heldSession{}}
}

// reserve makes room for a session. finish releases it.
func (t *sessionTable) reserve(limits sandbox.Limits) error {
	if t.make == nil {
		return fmt.Errorf("%w: this service makes no sessions", sandbox.ErrBadCall)
	}
	if err := (sandbox.Call{Limits: limits}).Validate(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open >= t.most {
		return fmt.Errorf("%w: %d", errManySessions, t.most)
	}
	t.open++
	return nil
}

func (t *sessionTable) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
}

// start opens a session without an id. The caller closes it and then calls finish.
func (t *sessionTable) start(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	if err := t.reserve(limits); err != nil {
		return nil, err
	}
	one, err := t.make.OpenSession(ctx, packages, limits)
	if err != nil {
		t.finish()
		return nil, err
	}
	return one, nil
}

// add opens a session that requests name by the returned id.
func (t *sessionTable) add(ctx context.Context, packages string, limits sandbox.Limits) (string, error) {
	if err := t.reserve(limits); err != nil {
		return "", err
	}
	id := rand.Text()
	if err := t.pool.Start(ctx, id, packages, limits); err != nil {
		t.finish()
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[id] = &heldSession{used: time.Now()}
	return id, nil
}

// run runs a cell in the session with an id.
func (t *sessionTable) run(ctx context.Context, id string, cell sandbox.Call) (sandbox.Result, error) {
	t.mu.Lock()
	held, known := t.of[id]
	if !known {
		t.mu.Unlock()
		return sandbox.Result{}, errNoSession
	}
	held.busy++
	t.mu.Unlock()
	result, err := t.pool.Run(ctx, id, cell)
	t.mu.Lock()
	held.busy--
	held.used = time.Now()
	t.mu.Unlock()
	return result, err
}

// remove ends the session with an id, and a cell that runs in it.
func (t *sessionTable) remove(id string) error {
	t.mu.Lock()
	_, known := t.of[id]
	delete(t.of, id)
	t.mu.Unlock()
	if !known {
		return errNoSession
	}
	defer t.finish()
	return t.pool.Drop(context.Background(), id)
}

// evict ends sessions that have not been used for too long.
func (t *sessionTable) evict(now time.Time) {
	t.mu.Lock()
	var idle []string
	for id, held := range t.of {
		if held.busy == 0 && now.Sub(held.used) > t.idle {
			idle = append(idle, id)
		}
	}
	t.mu.Unlock()
	for _, id := range idle {
		_ = t.remove(id) // its process ends in any case
	}
}

// count returns how many sessions are open.
func (t *sessionTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// close ends the sessions with ids. Streams close their own.
func (t *sessionTable) close() error { return t.pool.Close() }
