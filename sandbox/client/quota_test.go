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
	"github.com/ropewalk/ropewalk/sandbox/rpc"
	"github.com/ropewalk/ropewalk/sandbox/service"
)

func known(name, token string, q service.Quota) service.Client {
	return service.Client{Name: name, Tokens: []service.Token{service.TokenOf(token)}, Quota: q}
}

// A client that floods over the stream loses nothing: its calls wait. The calls of another client are not among them.
func TestAFloodWaitsAndOthersPass(t *testing.T) {
	executor := &fake{workers: 2, hold: make(chan struct{})}
	s := serve(t, service.Options{Executor: executor, Clients: []service.Client{
		known("flood", "flood", service.Quota{Calls: 8, Running: 1}), known("steady", "steady", service.Quota{})}})
	flood := open(t, client.Options{Addresses: []string{s.address}, Token: "flood", Preset: quick()})
	steady := open(t, client.Options{Addresses: []string{s.address}, Token: "steady", Preset: quick()})
	calls := held(500)
	wait := background(t, flood, calls)
	require.Eventually(t, func() bool { jobs, _ := s.Depth(); return executor.total() == 1 && jobs == 7 },
		hangs, time.Millisecond, "eight of its calls are in the service, one runs")
	results, err := steady.Run(t.Context(), codes(300))
	require.NoError(t, err)
	requireEach(t, codes(300), results)
	require.Equal(t, 301, executor.total(), "the flood's calls have not run meanwhile")
	close(executor.hold)
	requireEach(t, calls, wait())
	for _, call := range calls {
		require.Equal(t, 1, executor.ran(call.Code))
	}
}

// opener opens sessions that answer with their code, and counts those that are open.
type opener struct {
	fake
	open, most atomic.Int64
}

func (o *opener) OpenSession(context.Context, string, sandbox.Limits) (sandbox.Session, error) {
	for now := o.open.Add(1); ; {
		most := o.most.Load()
		if now <= most || o.most.CompareAndSwap(most, now) {
			return opened{o}, nil
		}
	}
}

type opened struct{ o *opener }

func (s opened) Run(_ context.Context, cell sandbox.Call) (sandbox.Result, error) {
	return sandbox.Result{Status: sandbox.StatusOK, Stdout: cell.Code}, nil
}

func (s opened) Close() error { s.o.open.Add(-1); return nil }

// A client opens further sessions when it has closed others.
func TestSessionsOverQuotaWait(t *testing.T) {
	executor := &opener{}
	s := serve(t, service.Options{Executor: executor,
		Clients: []service.Client{known("rl", "rl", service.Quota{Sessions: 2})}})
	c := open(t, client.Options{Addresses: []string{s.address}, Token: "rl"})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			one, err := c.OpenSession(t.Context(), "", sandbox.Limits{})
			if err != nil {
				t.Error(err)
				return
			}
			defer one.Close()
			result, err := one.Run(t.Context(), sandbox.Call{Code: fmt.Sprint(i)})
			if err != nil || result.Stdout != fmt.Sprint(i) {
				t.Errorf("got %v, %v", result, err)
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, executor.most.Load(), int64(2))

	impatient := open(t, client.Options{Addresses: []string{s.address}, Token: "rl", Patience: time.Millisecond})
	require.Eventually(t, func() bool { return executor.open.Load() == 0 }, hangs, time.Millisecond)
	for range 2 {
		one, err := c.OpenSession(t.Context(), "", sandbox.Limits{})
		require.NoError(t, err)
		defer one.Close()
	}
	_, err := impatient.OpenSession(t.Context(), "", sandbox.Limits{})
	require.ErrorIs(t, err, rpc.ErrOverQuota)
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	require.ErrorContains(t, err, `client "rl" has reached its limit: sessions is 2`)
}

// With the next token next to the old one in the file no call is lost. A stream ends when its token is gone.
func TestTokensCanBeReplaced(t *testing.T) {
	executor := &fake{workers: 2}
	rl := known("rl", "old", service.Quota{})
	s := serve(t, service.Options{Executor: executor, Clients: []service.Client{rl}})
	old := open(t, client.Options{Addresses: []string{s.address}, Token: "old"})
	rl.Tokens = append(rl.Tokens, service.TokenOf("next"))
	s.SetClients([]service.Client{rl})
	next := open(t, client.Options{Addresses: []string{s.address}, Token: "next"})
	for _, c := range []*client.Client{old, next} {
		results, err := c.Run(t.Context(), codes(20))
		require.NoError(t, err)
		requireEach(t, codes(20), results)
	}
	rl.Tokens = rl.Tokens[1:]
	s.SetClients([]service.Client{rl})
	ran := executor.total()
	_, err := old.Run(t.Context(), []sandbox.Call{{Code: "late"}})
	require.ErrorContains(t, err, "no valid token")
	require.Equal(t, ran, executor.total())
	results, err := next.Run(t.Context(), codes(20))
	require.NoError(t, err)
	requireEach(t, codes(20), results)
}
