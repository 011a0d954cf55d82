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
	open int             // includes the sessions of streams
	each map[*client]int // open sessions of each client
}

type heldSession struct {
	client *client // no other one can use it
	busy   int
	used   time.Time
}

func newSessionTable(maker sandbox.Sessions, most int, idle time.Duration) *sessionTable {
	// the table ends sessions before the pool does
	settings := session.Settings{Most: most, Idle: 2 * idle, Forget: 2 * idle}
	return &sessionTable{make: maker, pool: session.New(maker, settings), most: most, idle: idle,
		of: map[string]*heldSession{}, each: map[*client]int{}}
}

// reserve makes room for a session. finish releases it.
func (t *sessionTable) reserve(c *client, limits sandbox.Limits) error {
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
	if most := c.quota.Load().Sessions; most > 0 && t.each[c] >= most {
		return c.over(limitSessions, int64(most))
	}
	t.open++
	t.each[c]++
	return nil
}

func (t *sessionTable) finish(c *client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	if t.each[c]--; t.each[c] == 0 {
		delete(t.each, c)
	}
}

// start opens a session without an id. The caller closes it and then calls finish.
func (t *sessionTable) start(ctx context.Context, c *client, packages string, limits sandbox.Limits) (sandbox.Session,
	error) {
	if err := t.reserve(c, limits); err != nil {
		return nil, err
	}
	one, err := t.make.OpenSession(ctx, packages, limits)
	if err != nil {
		t.finish(c)
		return nil, err
	}
	return one, nil
}

// add opens a session that requests name by the returned id.
func (t *sessionTable) add(ctx context.Context, c *client, packages string, limits sandbox.Limits) (string, error) {
	if err := t.reserve(c, limits); err != nil {
		return "", err
	}
	id := rand.Text()
	if err := t.pool.Start(ctx, id, packages, limits); err != nil {
		t.finish(c)
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[id] = &heldSession{client: c, used: time.Now()}
	return id, nil
}

// run runs a cell in the client's session with an id.
func (t *sessionTable) run(ctx context.Context, c *client, id string, cell sandbox.Call) (sandbox.Result, error) {
	t.mu.Lock()
	held, known := t.of[id]
	if !known || held.client != c {
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

// remove ends the client's session with an id, and a cell that runs in it.
func (t *sessionTable) remove(c *client, id string) error {
	t.mu.Lock()
	held, known := t.of[id]
	if !known || held.client != c {
		t.mu.Unlock()
		return errNoSession
	}
	delete(t.of, id)
	t.mu.Unlock()
	defer t.finish(c)
	return t.pool.Drop(context.Background(), id)
}

// evict ends sessions that have not been used for too long.
func (t *sessionTable) evict(now time.Time) {
	t.mu.Lock()
	idle := map[string]*client{}
	for id, held := range t.of {
		if held.busy == 0 && now.Sub(held.used) > t.idle {
			idle[id] = held.client
		}
	}
	t.mu.Unlock()
	for id, c := range idle {
		_ = t.remove(c, id) // its process ends in any case
	}
}

// count returns how many sessions are open.
func (t *sessionTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// countOf returns how many sessions a client has open.
func (t *sessionTable) countOf(c *client) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.each[c]
}

// close ends the sessions with ids. Streams close their own.
func (t *sessionTable) close() error { return t.pool.Close() }
