package gang

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func on(host string) Options {
	return Options{Host: host, Address: "127.0.0.1", Engine: "e", Logger: slog.New(slog.DiscardHandler)}
}

func called(t *testing.T, hosts int) *Call {
	t.Helper()
	c, err := Open(on("a"), hosts, Work{Ranks: 2, Device: "cpu"})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func joined(t *testing.T, c *Call, host string) *Membership {
	t.Helper()
	p, err := Join(t.Context(), on(host), c.Invitation())
	require.NoError(t, err)
	t.Cleanup(func() { p.Leave("the test is over") })
	return p
}

type ordered struct {
	Orders
	error
}

// ready has a member wait for its orders.
func ready(t *testing.T, p *Membership) <-chan ordered {
	t.Helper()
	out := make(chan ordered, 1)
	go func() {
		o, err := p.Ready(context.Background())
		out <- ordered{o, err}
	}()
	return out
}

// gathered is a gang with its orders given.
func gathered(t *testing.T, hosts ...string) (*Call, []*Membership) {
	t.Helper()
	c := called(t, 1+len(hosts))
	var places []*Membership
	var orders []<-chan ordered
	for _, h := range hosts {
		places = append(places, joined(t, c, h))
		orders = append(orders, ready(t, places[len(places)-1]))
	}
	own, err := c.Gather(t.Context())
	require.NoError(t, err)
	require.Equal(t, len(hosts)+1, own.Hosts)
	seen := map[int]bool{own.Place: true}
	for _, o := range orders {
		its := <-o
		require.NoError(t, its.error)
		require.Equal(t, own.Rendezvous, its.Rendezvous)
		require.Equal(t, own.ID, its.ID)
		require.False(t, seen[its.Place], "each has a place of its own")
		seen[its.Place] = true
	}
	return c, places
}

func TestGather(t *testing.T) {
	c, places := gathered(t, "b", "c")
	require.Equal(t, Work{Ranks: 2, Device: "cpu"}, places[0].Work)
	_, err := Join(t.Context(), on("d"), c.Invitation())
	require.ErrorIs(t, err, ErrGone)
	require.ErrorContains(t, err, "all places are taken")
	host, _, err := net.SplitHostPort(c.Invitation().Address)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
}

func TestRefused(t *testing.T) {
	c := called(t, 3)
	b := joined(t, c, "b")
	other := c.Invitation()
	other.ID = "another"
	stale := on("c")
	stale.Engine = "f"
	for name, x := range map[string]struct {
		as   Options
		i    Invitation
		is   error
		says string
	}{
		"the leader's own host": {on("a"), c.Invitation(), ErrElsewhere, "host a has a place already"},
		"a member's host":       {on("b"), c.Invitation(), ErrElsewhere, "host b has a place already"},
		"another engine":        {stale, c.Invitation(), ErrElsewhere, "another version"},
		"another gang":          {on("c"), other, ErrGone, "no such gang"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Join(t.Context(), x.as, x.i)
			require.ErrorIs(t, err, x.is)
			require.ErrorContains(t, err, x.says)
		})
	}
	b.Leave("no devices")
	require.NoError(t, c.Close())
	_, err := Join(t.Context(), on("c"), c.Invitation())
	require.ErrorIs(t, err, ErrGone, "no one listens any more")
}

// A member that goes before the orders makes room for another.
func TestAMemberGivesItsPlaceUp(t *testing.T) {
	c := called(t, 2)
	b := joined(t, c, "b")
	_, err := Join(t.Context(), on("c"), c.Invitation())
	require.ErrorIs(t, err, ErrElsewhere, "who comes later asks again")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("not all came"))
	defer cancel()
	_, err = c.Gather(ctx)
	require.ErrorContains(t, err, "wait for 1 other hosts, there are b (without its devices): not all came")
	b.Leave("no devices")
	require.Eventually(t, func() bool { return c.present() == "none has come" }, 5*time.Second, time.Millisecond)
	its := ready(t, joined(t, c, "b"))
	_, err = c.Gather(t.Context())
	require.NoError(t, err)
	require.NoError(t, (<-its).error)
	require.NoError(t, c.Err())
}

// What ends on one side, the other side hears of.
func TestLosses(t *testing.T) {
	for name, x := range map[string]struct {
		lose func(c *Call, p []*Membership)
		says string
	}{
		"a member's ranks end": {
			func(_ *Call, p []*Membership) { p[1].Leave("exit status 1") },
			"host c is lost: its ranks ended: exit status 1",
		},
		"a member is killed": {
			func(_ *Call, p []*Membership) { p[1].line.conn.Close() }, "host c is lost: its connection ended",
		},
		"a member babbles": {
			func(_ *Call, p []*Membership) { _, _ = p[1].line.conn.Write([]byte("GET /\n")) },
			"host c is lost: it speaks another language",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, places := gathered(t, "b", "c")
			x.lose(c, places)
			<-c.Lost()
			require.ErrorContains(t, c.Err(), x.says)
			ctx, cancel := places[0].Context(t.Context())
			defer cancel()
			require.NoError(t, ctx.Err(), "the engine's end is the leader's to say")
			for _, p := range places {
				p.Leave("the leader ends the engine")
			}
		})
	}
	t.Run("the leader is killed", func(t *testing.T) {
		c, places := gathered(t, "b")
		ctx, cancel := places[0].Context(t.Context())
		defer cancel()
		for _, m := range c.members {
			m.line.conn.Close()
		}
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrGone)
	})
}

// Close returns when the members have gone, who go when they have ended what they ran.
func TestDismissed(t *testing.T) {
	c, places := gathered(t, "b", "c")
	freed := make(chan string, 2)
	for _, p := range places {
		go func() {
			ctx, cancel := p.Context(context.Background())
			defer cancel()
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond) // its ranks end
			freed <- context.Cause(ctx).Error()
			p.Leave("done")
		}()
	}
	require.NoError(t, c.Close())
	for range places {
		select {
		case why := <-freed:
			require.Contains(t, why, "the leader has closed its engine")
		default:
			require.Fail(t, "closed before its members had gone")
		}
	}
	require.NoError(t, c.Err())
	require.NoError(t, c.Close())
}

func TestAddresses(t *testing.T) {
	own, err := AddressTo("127.0.0.1:7233")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", own)
	name, err := Interface(own)
	require.NoError(t, err)
	require.NotEmpty(t, name)
	for address, says := range map[string]string{"192.0.2.1": "no network interface", "host.example": "no IP address"} {
		_, err := Interface(address)
		require.ErrorContains(t, err, says)
	}
}
