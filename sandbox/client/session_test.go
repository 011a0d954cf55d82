package client_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
	"github.com/ropewalk/ropewalk/sandbox/service"
)

// notebooks are sessions that echo their cells with a count.
type notebooks struct {
	fake
	mu     sync.Mutex
	open   int
	asleep atomic.Int64 // cells that have begun to sleep
}

func (n *notebooks) OpenSession(_ context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	if packages == "none" {
		return nil, fmt.Errorf("%w: packages %q are not offered", sandbox.ErrBadCall, packages)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open++
	return &notebook{of: n, packages: packages, limits: limits}, nil
}

func (n *notebooks) sessions() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open
}

type notebook struct {
	of       *notebooks
	packages string
	limits   sandbox.Limits
	cells    int
}

func (b *notebook) Run(ctx context.Context, cell sandbox.Call) (sandbox.Result, error) {
	switch cell.Code {
	case "exit":
		return sandbox.Result{}, fmt.Errorf("%w: it has exited", sandbox.ErrSessionEnded)
	case "sleep":
		b.of.asleep.Add(1)
		<-ctx.Done()
		return sandbox.Result{}, ctx.Err()
	}
	b.cells++
	return sandbox.Result{Status: sandbox.StatusOK, Value: fmt.Sprintf("%s %s %d", b.packages, b.limits.CPU, b.cells)},
		nil
}

func (b *notebook) Close() error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.open--
	return nil
}

func TestSessions(t *testing.T) {
	n := &notebooks{}
	s := serve(t, service.Options{Executor: n})
	c := open(t, client.Options{Addresses: []string{s.address}})
	one, err := c.OpenSession(t.Context(), "numpy", sandbox.Limits{CPU: time.Second})
	require.NoError(t, err)
	other, err := c.OpenSession(t.Context(), "bare", sandbox.Limits{})
	require.NoError(t, err)
	for i := range 3 {
		r, err := one.Run(t.Context(), sandbox.Call{Code: "x"})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("numpy 1s %d", i+1), r.Value)
	}
	r, err := other.Run(t.Context(), sandbox.Call{Code: "x"})
	require.NoError(t, err)
	require.Equal(t, "bare 0s 1", r.Value)

	_, err = one.Run(t.Context(), sandbox.Call{Code: "\xff"})
	require.ErrorIs(t, err, sandbox.ErrBadCall)
	_, err = one.Run(t.Context(), sandbox.Call{Code: "x"})
	require.NoError(t, err, "a bad cell does not end the session")
	_, err = one.Run(t.Context(), sandbox.Call{Code: "exit"})
	require.ErrorIs(t, err, sandbox.ErrSessionEnded)
	_, err = one.Run(t.Context(), sandbox.Call{Code: "x"})
	require.ErrorIs(t, err, sandbox.ErrSessionEnded)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := other.Run(ctx, sandbox.Call{Code: "sleep"}); done <- err }()
	until(t, func() bool { return n.asleep.Load() == 1 })
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	_, err = other.Run(t.Context(), sandbox.Call{Code: "x"})
	require.ErrorIs(t, err, sandbox.ErrSessionLost)
	require.NoError(t, one.Close())
	require.NoError(t, other.Close())
	until(t, func() bool { return n.sessions() == 0 }) // none is left at the node
	_, err = c.OpenSession(t.Context(), "none", sandbox.Limits{})
	require.ErrorIs(t, err, sandbox.ErrBadCall)
	_, err = c.OpenSession(t.Context(), "", sandbox.Limits{Wall: -1})
	require.ErrorContains(t, err, "limits.wall is negative")
}

func TestASessionIsLostWithItsNode(t *testing.T) {
	n := &notebooks{}
	s := serve(t, service.Options{Executor: n})
	c := open(t, client.Options{Addresses: []string{s.address}})
	session, err := c.OpenSession(t.Context(), "", sandbox.Limits{})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { _, err := session.Run(t.Context(), sandbox.Call{Code: "sleep"}); done <- err }()
	until(t, func() bool { return n.asleep.Load() == 1 })
	s.kill()
	err = <-done
	require.ErrorIs(t, err, sandbox.ErrSessionLost)
	require.ErrorIs(t, err, sandbox.ErrInfrastructure, "this is breakage: its cells may be run again elsewhere")
	require.NotErrorIs(t, err, sandbox.ErrSessionEnded)
	_, err = session.Run(t.Context(), sandbox.Call{Code: "x"})
	require.ErrorIs(t, err, sandbox.ErrSessionLost)
}

func TestAServiceWithoutSessionsSaysSo(t *testing.T) {
	s := serve(t, service.Options{Executor: &fake{}})
	c := open(t, client.Options{Addresses: []string{s.address}})
	_, err := c.OpenSession(t.Context(), "", sandbox.Limits{})
	require.ErrorContains(t, err, "makes no sessions")
}
