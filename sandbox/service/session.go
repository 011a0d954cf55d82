package service

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/sandbox"
)

// errManySessions means that the service has as many sessions as it may.
var errManySessions = errors.New("this service has reached its limit of sessions")

// sessionTable opens sessions within the bounds of the service and of its clients.
type sessionTable struct {
	make sandbox.Sessions
	most int

	mu   sync.Mutex
	open int
	each map[*client]int // open sessions of each client
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

// start opens a session. The caller closes it and then calls finish.
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
