package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// lateSessions starts what makes sessions when the first is asked for: most sandboxes are never asked. Sessions are
// isolated as calls are.
type lateSessions struct {
	options zygote.Options

	mu     sync.Mutex
	opened *zygote.Sessions
}

// newLateSessions makes sessions beside an executor that was opened with these options.
func newLateSessions(o zygote.Options, calls *zygote.Executor) *lateSessions {
	o.Preload, o.Tier = nil, sandbox.Tier(calls.Isolation())
	o.Python, _ = calls.Python()
	return &lateSessions{options: o}
}

// OpenSession implements sandbox.Sessions. What cannot be started is tried again for the next session.
func (l *lateSessions) OpenSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	opened, err := l.sessions()
	if err != nil {
		return nil, err
	}
	return opened.OpenSession(ctx, packages, limits)
}

func (l *lateSessions) sessions() (*zygote.Sessions, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != nil {
		return l.opened, nil
	}
	opened, err := zygote.OpenSessions(l.options)
	if err != nil {
		return nil, fmt.Errorf("%w: calls run in tier %s here, and no session does: %w", sandbox.ErrTier, l.options.Tier, err)
	}
	l.opened = opened
	return opened, nil
}

func (l *lateSessions) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		return nil
	}
	return l.opened.Close()
}
