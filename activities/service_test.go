package activities

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
	"github.com/ropewalk/ropewalk/sandbox/service"
	"github.com/ropewalk/ropewalk/schema"
)

// behindService puts an executor behind a service with a client, as on a worker that is given an address.
func behindService(t *testing.T, executor sandbox.Executor, preset sandbox.Preset,
	sessions sandbox.Sessions) *client.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := service.New(service.Options{Executor: executor, Sessions: sessions, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener, nil, time.Second) }()
	c, err := client.Open(client.Options{Addresses: []string{listener.Addr().String()}, Preset: preset})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, s.Close())
	})
	return c
}

func TestToolCallsRunInAService(t *testing.T) {
	b, _ := callingBench(t, sandbox.NewOnce(behindService(t, &printer{nth: -1}, sandbox.DefaultPreset, nil)))
	tools, assembled := b.shard()
	require.Equal(t, 2*benchSamples, tools.Calls)
	require.Zero(t, tools.Failed+tools.Excluded)
	for _, r := range rowsAt[schema.ToolCallRow](b, tools.Manifest) {
		require.Equal(t, "7\n", r.Stdout)
	}
	for _, r := range rowsAt[schema.TrajectoryRow](b, assembled) {
		require.EqualValues(t, 2, r.Turns)
	}
}

// A call that always breaks at the service excludes only its own trajectory, and the record of it names neither an
// address nor a time.
func TestACallThatBreaksInAServiceExcludesItsTrajectory(t *testing.T) {
	preset := sandbox.DefaultPreset
	preset.Name, preset.Backoff = "quick", time.Millisecond
	b, _ := callingBench(t, sandbox.NewOnce(behindService(t, &alone{}, preset, nil)))
	tools, _ := b.shard()
	require.Equal(t, 1, tools.Excluded)
	excluded := 0
	for _, r := range rowsAt[schema.ToolCallRow](b, tools.Manifest) {
		if r.Excluded != nil {
			excluded++
			require.Equal(t, "sandbox: call 0: zygote is gone (sent 5 times)", *r.Excluded)
		}
	}
	require.Equal(t, 1, excluded)
}

// alone has no verdict on the first program that it receives.
type alone struct {
	mu sync.Mutex
	printer
}

func (a *alone) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.printer.Run(ctx, calls)
}
