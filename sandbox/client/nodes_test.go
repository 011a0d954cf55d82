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
	until(t, func() bool { return c.Nodes() == len(executors) })
	return nodes, c
}

func TestANodeThatIsKilledLosesNothing(t *testing.T) {
	executors := []*fake{{workers: 4}, {workers: 4, sticks: 50}, {workers: 4}}
	nodes, c := three(t, client.Options{Preset: quick(), Hedges: -1}, executors...)
	calls := codes(1000)
	wait := background(t, c, calls)
	until(t, func() bool { return executors[1].total() > 50 })
	nodes[1].kill()
	requireEach(t, calls, wait())
	require.Equal(t, 2, c.Nodes())
}

func TestADrainingNodeFinishesItsCalls(t *testing.T) {
	executors := []*fake{{workers: 2, hold: make(chan struct{})}, {workers: 2}, {workers: 2}}
	nodes, c := three(t, client.Options{Preset: quick(), Hedges: -1}, executors...)
	calls := held(600)
	wait := background(t, c, calls)
	until(t, func() bool { return executors[0].total() >= 2 })
	stopped := make(chan error, 1)
	go func() { stopped <- nodes[0].stop() }()
	until(t, func() bool { return c.Nodes() == 2 })
	close(executors[0].hold)
	require.NoError(t, <-stopped, "its calls were finished")
	requireEach(t, calls, wait())
	sum := executors[0].total() + executors[1].total() + executors[2].total()
	require.Equal(t, len(calls), sum, "draining makes no call run twice")
	require.Equal(t, 2, c.Nodes())
}

func TestAServiceThatComesBack(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	first := &fake{workers: 2, sticks: 50}
	s := serveOn(t, listener, service.Options{Executor: first})
	c := open(t, client.Options{Addresses: []string{address}, Preset: quick()})
	calls := codes(300)
	wait := background(t, c, calls)
	until(t, func() bool { return first.total() > 50 })
	s.kill()
	again, err := net.Listen("tcp", address)
	require.NoError(t, err)
	serveOn(t, again, service.Options{Executor: &fake{workers: 2}})
	requireEach(t, calls, wait())
}

func TestSlowCallsAreHedged(t *testing.T) {
	slow := &fake{workers: 1, hold: make(chan struct{})}
	quickly := &fake{workers: 4}
	_, c := three(t, client.Options{Preset: quick(), Hedges: 0.5}, slow, quickly)
	defer close(slow.hold)
	results, err := c.Run(t.Context(), codes(400)) // both answer at once, so the latency is known
	require.NoError(t, err)
	requireEach(t, codes(400), results)
	for slow.ran("hold") == 0 { // the slow node does not answer the calls that it gets
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
	slow := &fake{workers: 2, takes: 20 * time.Millisecond, hold: make(chan struct{})}
	quickly := &fake{workers: 2, takes: 2 * time.Millisecond, hold: make(chan struct{})}
	nodes, c := three(t, client.Options{Preset: quick(), Window: 1000, Hedges: -1}, slow, quickly)
	for slow.total() == 0 || quickly.total() == 0 { // how long their calls take is known after that
		_, err := c.Run(t.Context(), codes(8))
		require.NoError(t, err)
	}
	before := []int{slow.total(), quickly.total()}
	calls := held(220)
	wait := background(t, c, calls)
	has := func(i int, e *fake) int {
		jobs, _ := nodes[i].Depth()
		return jobs + e.total() - before[i]
	}
	until(t, func() bool { return has(0, slow)+has(1, quickly) == len(calls) })
	require.Greater(t, has(1, quickly), 5*has(0, slow), "its calls take a tenth of the time")
	close(slow.hold)
	close(quickly.hold)
	requireEach(t, calls, wait())
}

// TestANodeThatFreezesIsLost checks that a node counts as lost if its machine is gone and no connection breaks.
func TestANodeThatFreezesIsLost(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	frozen := &freezer{Listener: listener, frozen: make(chan struct{})}
	slow, other := &fake{workers: 1, sticks: 10}, &fake{workers: 2}
	first := serveOn(t, frozen, service.Options{Executor: slow})
	second := serve(t, service.Options{Executor: other})
	c := open(t, client.Options{Addresses: []string{first.address, second.address}, Preset: quick(), Hedges: -1,
		Silence: 3 * time.Second})
	until(t, func() bool { return c.Nodes() == 2 })
	wait := background(t, c, codes(300))
	until(t, func() bool { return slow.total() > 10 })
	close(frozen.frozen)
	defer first.kill()
	requireEach(t, codes(300), wait())
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
	until(t, func() bool { return c.Nodes() == 2 })
	require.Equal(t, sandbox.TierFull, c.Hold())

	first.kill()
	until(t, func() bool { return c.Nodes() == 1 })
	again, err := net.Listen("tcp", address)
	require.NoError(t, err)
	weak := &fake{}
	serveOn(t, again, service.Options{Executor: tiered{weak, sandbox.TierLandlock}})
	until(t, func() bool { return c.Tier() == sandbox.TierLandlock }) // it is met
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
			until(t, func() bool { return got.Nodes() == len(c.tiers) })
			require.Equal(t, c.want, got.Tier())
		})
	}
}
