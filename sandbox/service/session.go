package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// errNoSession: no session has this id.
var errNoSession = fmt.Errorf("%w: no session has this id", sandbox.ErrSessionLost)

// errManySessions: there is room for no more.
var errManySessions = errors.New("there are as many sessions as this service holds")

// sessionTable holds the sessions that HTTP requests name by id, and counts those of streams.
type sessionTable struct {
	make sandbox.Sessions
	most int
	idle time.Duration

	mu   sync.Mutex
	of   map[string]*heldSession
	open int // streams' sessions included
}

type heldSession struct {
	session sandbox.Session
	limits  sandbox.Limits
	busy    int
	used    time.Time
}

func newSessionTable(maker sandbox.Sessions, most int, idle time.Duration) *sessionTable {
	return &sessionTable{make: maker, most: most, idle: idle, of: map[string]*heldSession{}}
}

// start makes a session, if there is room; finish gives the room back.
func (t *sessionTable) start(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	if t.make == nil {
		return nil, fmt.Errorf("%w: this service makes no sessions", sandbox.ErrBadCall)
	}
	if err := (sandbox.Call{Limits: limits}).Validate(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if t.open >= t.most {
		t.mu.Unlock()
		return nil, fmt.Errorf("%w: %d", errManySessions, t.most)
	}
	t.open++
	t.mu.Unlock()
	session, err := t.make.OpenSession(ctx, packages, limits)
	if err != nil {
		t.finish()
		return nil, err
	}
	return session, nil
}

func (t *sessionTable) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
}

// add opens a session that requests name by the id returned.
func (t *sessionTable) add(ctx context.Context, packages string, limits sandbox.Limits) (string, error) {
	session, err := t.start(ctx, packages, limits)
	if err != nil {
		return "", err
	}
	id := rand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[id] = &heldSession{session: session, limits: limits, used: time.Now()}
	return id, nil
}

// run runs a cell in the session of an id.
func (t *sessionTable) run(ctx context.Context, id string, cell sandbox.Call) (sandbox.Result, error) {
	t.mu.Lock()
	held, known := t.of[id]
	if !known {
		t.mu.Unlock()
		return sandbox.Result{}, errNoSession
	}
	held.busy++
	t.mu.Unlock()
	result, err := held.session.Run(ctx, cell)
	t.mu.Lock()
	held.busy--
	held.used = time.Now()
	t.mu.Unlock()
	return result, err
}

// remove closes the session of an id.
func (t *sessionTable) remove(id string) error {
	t.mu.Lock()
	held, known := t.of[id]
	delete(t.of, id)
	t.mu.Unlock()
	if !known {
		return errNoSession
	}
	defer t.finish()
	return held.session.Close()
}

// evict closes sessions that nobody has used for too long.
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
		_ = t.remove(id) // its process is gone either way
	}
}

// count is how many sessions are open.
func (t *sessionTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// close closes the sessions that have ids; streams close their own.
func (t *sessionTable) close() error {
	t.mu.Lock()
	ids := make([]string, 0, len(t.of))
	for id := range t.of {
		ids = append(ids, id)
	}
	t.mu.Unlock()
	var faults []error
	for _, id := range ids {
		faults = append(faults, t.remove(id))
	}
	return errors.Join(faults...)
}
