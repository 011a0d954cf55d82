// Package ondemand starts a sandbox's interpreter sessions when the first one is asked for.
package ondemand

import (
	"context"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// Sessions starts the process that makes sessions when the first session is asked for: most sandboxes never need it.
// Sessions are isolated as calls are.
type Sessions struct {
	options zygote.Options

	mu     sync.Mutex
	opened *zygote.Sessions
}

// New makes sessions for a sandbox whose executor was opened with these options.
func New(o zygote.Options, calls *zygote.Executor) *Sessions {
	o.Preload, o.Tier = nil, sandbox.Tier(calls.Isolation())
	o.Python, _ = calls.Python()
	return &Sessions{options: o}
}

// OpenSession implements sandbox.Sessions. What cannot be started is tried again for the next session.
func (l *Sessions) OpenSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	opened, err := l.sessions()
	if err != nil {
		return nil, err
	}
	return opened.OpenSession(ctx, packages, limits)
}

func (l *Sessions) sessions() (*zygote.Sessions, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != nil {
		return l.opened, nil
	}
	opened, err := zygote.OpenSessions(l.options)
	if err != nil {
		return nil, fmt.Errorf("%w: calls run in tier %s here, and no session does: %w", sandbox.ErrTier,
			l.options.Tier, err)
	}
	l.opened = opened
	return opened, nil
}

// Close closes what was started.
func (l *Sessions) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		return nil
	}
	return l.opened.Close()
}
