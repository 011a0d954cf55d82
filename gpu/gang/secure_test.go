package gang

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/authority"
	"github.com/ropewalk/ropewalk/internal/testing/transcript"
)

// hosts returns a function that makes the settings of a host, with a certificate of one authority for all.
func hosts(t *testing.T) func(host string) Options {
	t.Helper()
	ca, err := authority.New(t.TempDir())
	require.NoError(t, err)
	return func(host string) Options {
		pair, err := ca.Issue(host)
		require.NoError(t, err)
		o := on(host)
		o.TLS = TLS{Cert: pair.Cert, Key: pair.Key, CA: ca.File}
		return o
	}
}

// both is a file with the certificates of two files.
func both(t *testing.T, a, b string) string {
	t.Helper()
	var all []byte
	for _, file := range []string{a, b} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		all = append(all, data...)
	}
	path := filepath.Join(t.TempDir(), "both.pem")
	require.NoError(t, os.WriteFile(path, all, 0o600))
	return path
}

// noKey requires that no line of a host's key is in a text.
func noKey(t *testing.T, o Options, text string) {
	t.Helper()
	key, err := os.ReadFile(o.TLS.Key)
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(key)), "\n") {
		require.NotContains(t, text, line)
	}
}

// A host without a certificate of the authority gets no place, both sides say why, and the gang gathers without it.
func TestStrangersAreRefused(t *testing.T) {
	its, others := hosts(t), hosts(t)
	leader, stranger := its("a"), others("b")
	trusting := stranger
	trusting.TLS.CA = both(t, leader.TLS.CA, stranger.TLS.CA)
	var log transcript.Transcript
	leader.Logger = slog.New(slog.NewTextHandler(&log, nil))
	c, err := Open(leader, 2, Work{Ranks: 2, Device: "cpu"})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })

	for name, x := range map[string]struct {
		as             Options
		member, leader string // the member's error, the leader's log
	}{
		"neither trusts the other": {stranger, "certificate signed by unknown authority", "bad certificate"},
		"the leader refuses":       {trusting, "tls: unknown certificate authority", "unknown authority"},
		"no TLS": {
			on("b"), "host a demands TLS and a certificate", "it uses no TLS, this host demands it",
		},
	} {
		_, err := Join(t.Context(), x.as, c.Invitation())
		require.ErrorIs(t, err, ErrElsewhere, name)
		require.ErrorContains(t, err, x.member, name)
		require.Eventually(t, func() bool { return strings.Contains(log.String(), x.leader) }, time.Minute,
			time.Millisecond, name)
		noKey(t, stranger, err.Error())
	}
	babbler, err := net.Dial("tcp", c.Invitation().Address)
	require.NoError(t, err)
	defer babbler.Close()
	_, err = babbler.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
	require.NoError(t, err)
	answer, err := io.ReadAll(babbler)
	require.NoError(t, err)
	require.Contains(t, string(answer), "demands TLS")

	b, err := Join(t.Context(), its("b"), c.Invitation())
	require.NoError(t, err)
	orders := ready(t, b)
	_, err = c.Gather(t.Context())
	require.NoError(t, err)
	require.NoError(t, (<-orders).error)
	b.Leave("the test is over")
	<-c.Lost()
	require.ErrorContains(t, c.Err(), "host b is lost: its ranks ended: the test is over")
	for _, o := range []Options{leader, stranger} {
		noKey(t, o, log.String())
	}
}

// A member that demands TLS does not join a gang without it.
func TestNoGangWithoutTLS(t *testing.T) {
	c := called(t, 2)
	_, err := Join(t.Context(), hosts(t)("b"), c.Invitation())
	require.ErrorIs(t, err, ErrElsewhere)
	require.ErrorContains(t, err, "the leader uses no TLS, this host demands it")
	require.Equal(t, "none has come", c.present())
}

// What member and leader tell each other cannot be read on the way, wherever the leader's address leads.
func TestNothingIsReadable(t *testing.T) {
	its := hosts(t)
	c, err := Open(its("a"), 2, Work{Ranks: 2, Device: "cpu"})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	var wire transcript.Transcript
	between, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer between.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		from, err := between.Accept()
		if err != nil {
			return
		}
		defer from.Close()
		to, err := net.Dial("tcp", c.Invitation().Address)
		if err != nil {
			return
		}
		defer to.Close()
		back := make(chan struct{})
		go func() { defer close(back); _, _ = io.Copy(io.MultiWriter(from, &wire), to) }()
		_, _ = io.Copy(io.MultiWriter(to, &wire), from)
		to.Close()
		<-back
	}()
	p, err := Join(t.Context(), its("member-host"), Invitation{Address: between.Addr().String(), ID: c.Invitation().ID})
	require.NoError(t, err)
	require.Equal(t, Work{Ranks: 2, Device: "cpu"}, p.Work)
	p.Leave("the test is over")
	<-ended
	require.Greater(t, len(wire.String()), 1000)
	for _, said := range []string{"member-host", c.Invitation().ID, `"ranks"`, "the test is over"} {
		require.NotContains(t, wire.String(), said)
	}
}

// With TLS the ranks' store is on loopback, and a member's ranks reach it through the leader's port, even if it listens
// later than they ask.
func TestRanksMeetThroughTheLeader(t *testing.T) {
	its := hosts(t)
	var log transcript.Transcript
	leader := its("a")
	leader.Logger = slog.New(slog.NewTextHandler(&log, nil))
	c, err := Open(leader, 2, Work{Ranks: 2, Device: "cpu"})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	member := its("b")
	p, err := Join(t.Context(), member, c.Invitation())
	require.NoError(t, err)
	t.Cleanup(func() { p.Leave("the test is over") })

	meet := func(id string) net.Conn { // what else could ask the leader
		conn, err := member.dial(t.Context(), c.Invitation().Address)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		require.NoError(t, newLine(conn).write(message{Meet: id}))
		return conn
	}
	refused := func(conn net.Conn) {
		t.Helper()
		_, err := conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	refused(meet(c.Invitation().ID)) // there is no store yet
	orders := ready(t, p)
	own, err := c.Gather(t.Context())
	require.NoError(t, err)
	refused(meet("another"))
	require.Equal(t, 2, strings.Count(log.String(), "there is no such gang, or its hosts are not gathered"))

	given := <-orders
	require.NoError(t, given.error)
	for _, address := range []string{own.Rendezvous, given.Rendezvous} {
		host, _, err := net.SplitHostPort(address)
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1", host)
	}
	require.NotEqual(t, own.Rendezvous, given.Rendezvous)
	rank, err := net.Dial("tcp", given.Rendezvous)
	require.NoError(t, err)
	defer rank.Close()
	_, err = rank.Write([]byte("asks"))
	require.NoError(t, err)
	store, err := net.Listen("tcp", own.Rendezvous)
	require.NoError(t, err)
	defer store.Close()
	asked, err := store.Accept()
	require.NoError(t, err)
	defer asked.Close()
	got := make([]byte, 4)
	_, err = io.ReadFull(asked, got)
	require.NoError(t, err)
	require.Equal(t, "asks", string(got))
	_, err = asked.Write([]byte("says"))
	require.NoError(t, err)
	_, err = io.ReadFull(rank, got)
	require.NoError(t, err)
	require.Equal(t, "says", string(got))

	p.Leave("done")
	_, err = rank.Read(got)
	require.Error(t, err, "it ends with the member's place")
	_, err = asked.Read(got)
	require.Error(t, err)
	require.Eventually(t, func() bool { // nothing listens any more
		conn, err := net.Dial("tcp", given.Rendezvous)
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond)
}

// Files that other hosts would refuse are refused when the worker starts.
func TestCertificatesAreChecked(t *testing.T) {
	its, other := hosts(t)("a").TLS, hosts(t)("a").TLS
	require.NoError(t, its.Check())
	absent := filepath.Join(t.TempDir(), "absent.pem")
	for want, bad := range map[string]TLS{
		"read this host's certificate: open " + absent: {absent, its.Key, its.CA},
		"private key does not match public key":        {its.Cert, other.Key, its.CA},
		"read the authority of the hosts: open":        {its.Cert, its.Key, absent},
		its.Key + " holds no PEM certificate":          {its.Cert, its.Key, its.Key},
		"certificate signed by unknown authority":      {its.Cert, its.Key, other.CA},
	} {
		require.ErrorContains(t, bad.Check(), want)
		_, err := Open(Options{Host: "a", Address: "127.0.0.1", TLS: bad}, 2, Work{})
		require.ErrorContains(t, err, want)
		_, err = Join(t.Context(), Options{Host: "b", TLS: bad}, Invitation{Address: "127.0.0.1:9"})
		require.ErrorIs(t, err, ErrElsewhere)
		require.ErrorContains(t, err, want)
	}
}
