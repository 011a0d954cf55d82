package client_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
	"github.com/ropewalk/ropewalk/sandbox/service"
)

// three starts three nodes and a client of all of them.
func three(t *testing.T, o client.Options, executors ...*fake) ([]*server, *client.Client) {
	t.Helper()
	var nodes []*server
	for _, e := range executors {
		nodes = append(nodes, serve(t, service.Options{Executor: e}))
		o.Addresses = append(o.Addresses, nodes[len(nodes)-1].address)
	}
	c := open(t, o)
	require.Eventually(t, func() bool { return c.Nodes() == len(executors) }, 10*time.Second, time.Millisecond)
	return nodes, c
}

func TestANodeThatIsKilledLosesNothing(t *testing.T) {
	executors := []*fake{{workers: 4, takes: time.Millisecond}, {workers: 4, takes: time.Millisecond},
		{workers: 4, takes: time.Millisecond}}
	nodes, c := three(t, client.Options{Preset: quick()}, executors...)
	calls := codes(6000)
	var results []sandbox.Result
	done := make(chan error, 1)
	go func() {
		var err error
		results, err = c.Run(t.Context(), calls)
		done <- err
	}()
	require.Eventually(t, func() bool { return executors[1].total() > 200 }, 10*time.Second, time.Millisecond)
	nodes[1].kill()
	require.NoError(t, <-done)
	requireEach(t, calls, results)
	require.Less(t, executors[1].total(), 2500, "it was killed under load")
	require.Equal(t, 2, c.Nodes())
}

func TestADrainingNodeFinishesItsCalls(t *testing.T) {
	executors := []*fake{{workers: 2, takes: time.Millisecond}, {workers: 2, takes: time.Millisecond},
		{workers: 2, takes: time.Millisecond}}
	nodes, c := three(t, client.Options{Preset: quick(), Hedges: -1}, executors...)
	calls := codes(3000)
	var results []sandbox.Result
	done := make(chan error, 1)
	go func() {
		var err error
		results, err = c.Run(t.Context(), calls)
		done <- err
	}()
	require.Eventually(t, func() bool { return executors[0].total() > 50 }, 10*time.Second, time.Millisecond)
	require.NoError(t, nodes[0].stop(), "its calls were finished in time")
	require.NoError(t, <-done)
	requireEach(t, calls, results)
	sum := executors[0].total() + executors[1].total() + executors[2].total()
	require.Equal(t, len(calls), sum, "draining makes no call run twice")
	require.Eventually(t, func() bool { return c.Nodes() == 2 }, 10*time.Second, time.Millisecond)
}

func TestAServiceThatComesBack(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	first := &fake{workers: 2, takes: time.Millisecond}
	s := serveOn(t, listener, service.Options{Executor: first})
	c := open(t, client.Options{Addresses: []string{address}, Preset: quick()})
	calls := codes(2000)
	var results []sandbox.Result
	done := make(chan error, 1)
	go func() {
		var err error
		results, err = c.Run(t.Context(), calls)
		done <- err
	}()
	require.Eventually(t, func() bool { return first.total() > 100 }, 10*time.Second, time.Millisecond)
	s.kill()
	again, err := net.Listen("tcp", address)
	require.NoError(t, err)
	serveOn(t, again, service.Options{Executor: &fake{workers: 2}})
	require.NoError(t, <-done)
	requireEach(t, calls, results)
}

func TestSlowCallsAreHedged(t *testing.T) {
	slow := &fake{workers: 1, hold: make(chan struct{})}
	quickly := &fake{workers: 4}
	_, c := three(t, client.Options{Preset: quick(), Hedges: 0.5}, slow, quickly)
	defer close(slow.hold)
	results, err := c.Run(t.Context(), codes(400)) // both answer at once, so the latency is known
	require.NoError(t, err)
	requireEach(t, codes(400), results)
	for began := time.Now(); slow.ran("hold") == 0; { // the slow node does not answer the calls that it gets
		require.Less(t, time.Since(began), time.Minute, "the slow node got no call")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				results, err := c.Run(t.Context(), []sandbox.Call{{Code: "hold"}})
				if err != nil || results[0].Stdout != "hold" {
					t.Errorf("got %v, %v", results, err)
				}
			})
		}
		all.Wait()
	}
}

func TestTheFasterNodeGetsMore(t *testing.T) {
	slow, quickly := &fake{workers: 2, takes: 20 * time.Millisecond}, &fake{workers: 2, takes: 2 * time.Millisecond}
	_, c := three(t, client.Options{Preset: quick(), Window: 64, Hedges: -1}, slow, quickly)
	calls := codes(1000)
	results, err := c.Run(t.Context(), calls)
	require.NoError(t, err)
	requireEach(t, calls, results)
	require.Greater(t, quickly.total(), 2*slow.total())
}

// TestANodeThatFreezesIsLost checks that a node counts as lost if its machine is gone and no connection breaks.
func TestANodeThatFreezesIsLost(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	frozen := &freezer{Listener: listener, frozen: make(chan struct{})}
	slow, other := &fake{workers: 1, takes: 5 * time.Millisecond}, &fake{workers: 2, takes: time.Millisecond}
	first := serveOn(t, frozen, service.Options{Executor: slow})
	second := serve(t, service.Options{Executor: other})
	c := open(t, client.Options{Addresses: []string{first.address, second.address}, Preset: quick(), Hedges: -1,
		Silence: 3 * time.Second})
	require.Eventually(t, func() bool { return c.Nodes() == 2 }, 10*time.Second, time.Millisecond)
	wait := background(t, c, codes(1000))
	require.Eventually(t, func() bool { return slow.total() > 10 }, 10*time.Second, time.Millisecond)
	close(frozen.frozen)
	defer first.kill()
	requireEach(t, codes(1000), wait())
	require.Equal(t, 1, c.Nodes())
}

// freezer's connections transfer nothing once it is frozen.
type freezer struct {
	net.Listener
	frozen chan struct{}
}

func (f *freezer) Accept() (net.Conn, error) {
	conn, err := f.Listener.Accept()
	return frozenConn{conn, f.frozen}, err
}

type frozenConn struct {
	net.Conn
	frozen chan struct{}
}

func (c frozenConn) Write(p []byte) (int, error) {
	select {
	case <-c.frozen:
		return len(p), nil // the data is dropped
	default:
		return c.Conn.Write(p)
	}
}

func TestASilentNodeIsNotUsed(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	require.NoError(t, err)
	defer deaf.Close()
	s := serve(t, service.Options{Executor: &fake{workers: 2}})
	c := open(t, client.Options{Addresses: []string{deaf.Addr().String(), s.address}, Preset: quick()})
	results, err := c.Run(t.Context(), codes(100))
	require.NoError(t, err)
	requireEach(t, codes(100), results)
	require.Equal(t, 1, c.Nodes())
}

// tiered is a fake that reports a tier of isolation.
type tiered struct {
	*fake
	tier sandbox.Tier
}

func (e tiered) Isolation() string { return string(e.tier) }

func TestANodeThatComesBackWeakerIsLeftOut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	first := serveOn(t, listener, service.Options{Executor: tiered{&fake{}, sandbox.TierFull}})
	strong := serve(t, service.Options{Executor: tiered{&fake{}, sandbox.TierFull}})
	c := open(t, client.Options{Addresses: []string{address, strong.address}, Preset: quick(),
		Patience: 200 * time.Millisecond})
	require.Eventually(t, func() bool { return c.Nodes() == 2 }, 10*time.Second, time.Millisecond)
	require.Equal(t, sandbox.TierFull, c.Hold())

	first.kill()
	require.Eventually(t, func() bool { return c.Nodes() == 1 }, 10*time.Second, time.Millisecond)
	again, err := net.Listen("tcp", address)
	require.NoError(t, err)
	weak := &fake{}
	serveOn(t, again, service.Options{Executor: tiered{weak, sandbox.TierLandlock}})
	require.Eventually(t, func() bool { return c.Tier() == sandbox.TierLandlock }, 10*time.Second, time.Millisecond,
		"it is met")
	results, err := c.Run(t.Context(), codes(200))
	require.NoError(t, err)
	requireEach(t, codes(200), results)
	require.Zero(t, weak.total())
	require.Equal(t, 1, c.Nodes())

	strong.kill()
	_, err = c.Run(t.Context(), codes(1))
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	require.ErrorContains(t, err, address+" isolates calls as landlock, and full was found at the start")
	require.Zero(t, weak.total())
}

func TestTierIsTheWeakestReported(t *testing.T) {
	for name, c := range map[string]struct {
		tiers []sandbox.Tier
		want  sandbox.Tier
	}{
		"one":           {[]sandbox.Tier{sandbox.TierLandlock}, sandbox.TierLandlock},
		"weaker second": {[]sandbox.Tier{sandbox.TierFull, sandbox.TierRlimits}, sandbox.TierRlimits},
		"weaker first":  {[]sandbox.Tier{sandbox.TierLandlock, sandbox.TierFull}, sandbox.TierLandlock},
		"silent first":  {[]sandbox.Tier{"", sandbox.TierFull}, ""},
		"silent last":   {[]sandbox.Tier{sandbox.TierFull, ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := client.Options{Preset: quick()}
			for _, tier := range c.tiers {
				o.Addresses = append(o.Addresses, serve(t, service.Options{Executor: tiered{&fake{}, tier}}).address)
			}
			got := open(t, o)
			require.Eventually(t, func() bool { return got.Nodes() == len(c.tiers) }, 10*time.Second, time.Millisecond)
			require.Equal(t, c.want, got.Tier())
		})
	}
}
