package zygote

import (
	"context"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/sandbox"
)

// LateSessions starts the process that makes sessions when the first session is asked for: most sandboxes never need
// it. Sessions are isolated as calls are.
type LateSessions struct {
	options Options

	mu     sync.Mutex
	opened *Sessions
}

// NewLateSessions makes sessions for a sandbox whose executor was opened with these options.
func NewLateSessions(o Options, calls *Executor) *LateSessions {
	o.Preload, o.Tier = nil, sandbox.Tier(calls.Isolation())
	o.Python, _ = calls.Python()
	return &LateSessions{options: o}
}

// OpenSession implements sandbox.Sessions. What cannot be started is tried again for the next session.
func (l *LateSessions) OpenSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session,
	error) {
	opened, err := l.sessions()
	if err != nil {
		return nil, err
	}
	return opened.OpenSession(ctx, packages, limits)
}

func (l *LateSessions) sessions() (*Sessions, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != nil {
		return l.opened, nil
	}
	opened, err := OpenSessions(l.options)
	if err != nil {
		return nil, fmt.Errorf("%w: calls run in tier %s here, and no session does: %w", sandbox.ErrTier,
			l.options.Tier, err)
	}
	l.opened = opened
	return opened, nil
}

// Close closes what was started.
func (l *LateSessions) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		return nil
	}
	return l.opened.Close()
}
