package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// session is a session on a node. It lives as long as its stream.
type session struct {
	address string
	conn    rpc.Sandbox_SessionClient
	cancel  context.CancelFunc

	mu   sync.Mutex // one cell at a time
	lost error      // why no more cells can run
}

// OpenSession implements sandbox.Sessions. It chooses the node with the lowest load. A node where this client has as
// many sessions as it may is asked again, for as long as the client waits for a node.
func (c *Client) OpenSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	const first, most = 20 * time.Millisecond, time.Second
	began := time.Now()
	for wait := first; ; wait = min(2*wait, most) {
		one, err := c.openSession(ctx, packages, limits)
		if !errors.Is(err, rpc.ErrOverQuota) || time.Since(began) > c.o.Patience {
			return one, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// openSession is OpenSession for a client with room for one more.
func (c *Client) openSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	n, err := c.awaitNode(ctx)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(n.authorized(c.life))
	stop := context.AfterFunc(ctx, cancel) // ctx bounds the opening, not the session
	conn, err := rpc.NewSandboxClient(n.conn).Session(life)
	if err == nil {
		err = conn.Send(&rpc.SessionRequest{Open: &rpc.OpenSession{Packages: packages, Limits: rpc.FromLimits(limits)}})
	}
	s := &session{address: n.address, conn: conn, cancel: cancel}
	if err == nil || errors.Is(err, io.EOF) {
		_, err = s.receive()
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("open session: %w", err)
	}
	return s, nil
}

// awaitNode waits for a node that accepts sessions.
func (c *Client) awaitNode(ctx context.Context) (*node, error) {
	waiting, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	for {
		if err := c.Ready(waiting); err != nil {
			return nil, err
		}
		c.mu.Lock()
		n := c.choose(nil)
		changed := c.known
		c.mu.Unlock()
		if n != nil {
			return n, nil
		}
		select {
		case <-changed:
		case <-waiting.Done():
			return nil, fmt.Errorf("%w: no node has room", sandbox.ErrInfrastructure)
		}
	}
}

// receive reads one response. If the stream ends, so does the session.
func (s *session) receive() (sandbox.Result, error) {
	in, err := s.conn.Recv()
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("%w: %w at %s: %w", sandbox.ErrSessionLost, errNodeLost, s.address,
			plainly(ended(err)))
	}
	if failure := in.GetFailure(); failure != nil {
		return sandbox.Result{}, failure.Err()
	}
	return in.GetResult().Sandbox(), nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Run implements sandbox.Session. If ctx ends while a cell runs, the session ends.
func (s *session) Run(ctx context.Context, cell sandbox.Call) (sandbox.Result, error) {
	if err := cell.Validate(); err != nil {
		return sandbox.Result{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return sandbox.Result{}, s.lost
	}
	if err := ctx.Err(); err != nil {
		return sandbox.Result{}, err
	}
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	if err := s.conn.Send(&rpc.SessionRequest{Cell: rpc.FromCall(cell)}); err != nil && !errors.Is(err, io.EOF) {
		return sandbox.Result{}, s.lose(ctx,
			fmt.Errorf("%w: %w at %s: %w", sandbox.ErrSessionLost, errNodeLost, s.address, plainly(err)))
	}
	result, err := s.receive()
	if errors.Is(err, sandbox.ErrSessionLost) || errors.Is(err, errNodeLost) {
		return sandbox.Result{}, s.lose(ctx, err)
	}
	return result, err
}

// lose records that the session has ended.
func (s *session) lose(ctx context.Context, err error) error {
	s.lost = err
	if ctx.Err() != nil {
		s.lost = fmt.Errorf("%w: a cell was given up: %w", sandbox.ErrSessionLost, ctx.Err())
		return ctx.Err()
	}
	return err
}

// Close ends the session and a cell that runs in it. A second call does nothing.
func (s *session) Close() error {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = fmt.Errorf("%w: it was closed", sandbox.ErrSessionEnded)
	}
	return nil
}
