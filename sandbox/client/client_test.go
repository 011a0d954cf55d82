package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
	"github.com/ropewalk/ropewalk/sandbox/service"
)

func TestRunGivesEachCallItsVerdict(t *testing.T) {
	s := serve(t, service.Options{Executor: &fake{workers: 4}})
	c := open(t, client.Options{Addresses: []string{s.address}})
	calls := codes(500)
	calls[7].Files = []sandbox.File{{Name: "a/b", Content: []byte{0, 1, 255}}}
	calls[8].Stdin = "\xff not UTF-8"
	results, err := c.Run(t.Context(), calls)
	require.NoError(t, err)
	requireEach(t, calls, results)
	require.Equal(t, calls[7].Files, results[7].Files)
	none, err := c.Run(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)
	require.Equal(t, 4, c.Workers())
}

func TestBurst(t *testing.T) {
	const n = 10_000
	executor := &fake{workers: 8}
	s := serve(t, service.Options{Executor: executor})
	c := open(t, client.Options{Addresses: []string{s.address}, Window: n})
	calls := codes(n)
	results, err := c.Run(t.Context(), calls)
	require.NoError(t, err)
	requireEach(t, calls, results)
	for _, call := range calls {
		require.Equal(t, 1, executor.ran(call.Code), "one key, one run")
	}
}

func TestAFullQueueStopsReadingAndDropsNothing(t *testing.T) {
	executor := &fake{workers: 2, hold: make(chan struct{})}
	s := serve(t, service.Options{Executor: executor, QueueBytes: 1}) // raised to the minimum of 64 MiB
	c := open(t, client.Options{Addresses: []string{s.address}})
	calls := held(110) // 1 MiB each
	for i := range calls {
		calls[i].Code += strings.Repeat(" ", 1<<20)
	}
	wait := background(t, c, calls)
	queued := func() int64 { _, bytes := s.Depth(); return bytes }
	until(t, func() bool { return queued() > 60<<20 })
	require.LessOrEqual(t, queued(), int64(rpc.MostMessage))
	jobs, _ := s.Depth()
	require.Less(t, jobs, 80, "the others have not been read")
	close(executor.hold)
	requireEach(t, calls, wait())
}

func TestFaultsOfCalls(t *testing.T) {
	executor := &fake{workers: 2, breaks: map[string]int{"once": 1, "thrice": 3, "always": 1 << 30}}
	s := serve(t, service.Options{Executor: executor})
	c := open(t, client.Options{Addresses: []string{s.address}, Preset: quick()})
	calls := []sandbox.Call{{Code: "ok"}, {Code: "once"}, {Code: "thrice"}, {Code: "always"}, {Code: "\xff"},
		{Code: "x", Language: "cobol"}}
	results, err := c.Run(t.Context(), calls)
	var broken sandbox.CallErrors
	require.ErrorAs(t, err, &broken)
	require.Len(t, broken, len(calls))
	for i := range 3 {
		require.NoError(t, broken[i])
		require.Equal(t, calls[i].Code, results[i].Stdout)
	}
	require.ErrorIs(t, broken[3], sandbox.ErrInfrastructure)
	require.ErrorContains(t, broken[3], "the zygote is gone (sent 5 times)")
	require.Equal(t, 5, executor.ran("always"), "four retries, as the preset says")
	require.ErrorIs(t, broken[4], sandbox.ErrBadCall)
	require.ErrorContains(t, broken[4], "code is not UTF-8")
	require.ErrorIs(t, broken[5], sandbox.ErrBadCall)
	require.Equal(t, 1, executor.ran("x"), "a malformed call is not sent again")
}

func TestQueueLife(t *testing.T) {
	executor := &fake{workers: 1, hold: make(chan struct{})}
	s := serve(t, service.Options{Executor: executor})
	defer close(executor.hold)
	once := quick()
	once.Resend = false
	c := open(t, client.Options{Addresses: []string{s.address}, Preset: once})
	stuck, end := context.WithCancel(t.Context())
	defer end()
	go c.Run(stuck, []sandbox.Call{{Code: "hold 1"}, {Code: "hold 2"}})
	until(t, func() bool { return executor.ran("hold 1") == 1 && executor.ran("hold 2") == 1 })
	_, err := c.Do(t.Context(), []client.Request{{Call: sandbox.Call{Code: "late"}, QueueLife: 50 * time.Millisecond}})
	require.ErrorIs(t, err, sandbox.ErrQueueTimeout)
	require.Zero(t, executor.ran("late"))

	patient := quick()
	patient.Retries = 1000
	again := open(t, client.Options{Addresses: []string{s.address}, Preset: patient})
	time.AfterFunc(400*time.Millisecond, func() { executor.hold <- struct{}{}; executor.hold <- struct{}{} })
	results, err := again.Do(t.Context(),
		[]client.Request{{Call: sandbox.Call{Code: "resent"}, QueueLife: 150 * time.Millisecond}})
	require.NoError(t, err)
	require.Equal(t, "resent", results[0].Stdout)
}

func TestKeys(t *testing.T) {
	executor := &fake{workers: 4, takes: 20 * time.Millisecond}
	s := serve(t, service.Options{Executor: executor})
	o := client.Options{Addresses: []string{s.address}}
	one, other := open(t, o), open(t, o)
	request := []client.Request{{Call: sandbox.Call{Code: "once"}, Key: "k"}}
	var all sync.WaitGroup
	for _, c := range []*client.Client{one, one, one, other} {
		all.Go(func() {
			results, err := c.Do(t.Context(), request)
			if err != nil || results[0].Stdout != "once" {
				t.Errorf("got %v, %v", results, err)
			}
		})
	}
	all.Wait()
	_, err := other.Do(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 1, executor.ran("once"))

	_, err = other.Do(t.Context(), []client.Request{{Call: sandbox.Call{Code: "twice"}, Key: "k"}})
	require.ErrorIs(t, err, rpc.ErrKeyConflict)
	require.ErrorIs(t, err, sandbox.ErrBadCall)
	_, err = other.Do(t.Context(), []client.Request{{Call: sandbox.Call{Code: "a"}, Key: "l"},
		{Call: sandbox.Call{Code: "b"}, Key: "l"}})
	var broken sandbox.CallErrors
	require.ErrorAs(t, err, &broken)
	require.NoError(t, broken[0])
	require.ErrorIs(t, broken[1], rpc.ErrKeyConflict)
}

func TestDeadline(t *testing.T) {
	executor := &fake{workers: 1, hold: make(chan struct{})}
	s := serve(t, service.Options{Executor: executor})
	defer close(executor.hold)
	c := open(t, client.Options{Addresses: []string{s.address}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Run(ctx, []sandbox.Call{{Code: "hold"}, {Code: "hold"}, {Code: "hold 3"}, {Code: "hold 4"}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Eventually(t, func() bool { jobs, _ := s.Depth(); return jobs == 0 }, hangs, time.Millisecond,
		"what waited is dropped")
}

func TestNoService(t *testing.T) {
	c, err := client.Open(client.Options{Addresses: []string{"127.0.0.1:1"}, Patience: 2 * time.Second})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Run(t.Context(), codes(3))
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	require.ErrorContains(t, err, "sandbox service at 127.0.0.1:1: ")
	require.ErrorContains(t, err, "refused")
	_, err = client.Open(client.Options{Addresses: []string{"nowhere"}})
	require.ErrorContains(t, err, "nowhere")
	_, err = client.Open(client.Options{})
	require.ErrorContains(t, err, "name the address")
}

func TestToken(t *testing.T) {
	s := serve(t, service.Options{Executor: &fake{}, Token: "secret"})
	c := open(t, client.Options{Addresses: []string{s.address}, Token: "secret"})
	_, err := c.Run(t.Context(), codes(1))
	require.NoError(t, err)
	wrong, err := client.Open(client.Options{Addresses: []string{s.address}, Token: "guess"})
	require.NoError(t, err)
	defer wrong.Close()
	_, err = wrong.Run(t.Context(), codes(1))
	require.ErrorContains(t, err, "no valid token")
	require.ErrorContains(t, wrong.Ready(t.Context()), "no valid token")
}

func TestClosed(t *testing.T) {
	executor := &fake{workers: 1, hold: make(chan struct{})}
	s := serve(t, service.Options{Executor: executor})
	defer close(executor.hold)
	c, err := client.Open(client.Options{Addresses: []string{s.address}})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { _, err := c.Run(context.Background(), []sandbox.Call{{Code: "hold"}}); done <- err }()
	until(t, func() bool { return executor.ran("hold") == 1 })
	require.NoError(t, c.Close())
	err = <-done
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	require.False(t, errors.Is(err, context.Canceled))
	_, err = c.Run(t.Context(), codes(1))
	require.ErrorContains(t, err, "client is closed")
	require.NoError(t, c.Close())
}
