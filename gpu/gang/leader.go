package gang

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// dismissLimit is how long members may take to end their ranks after they are dismissed.
const dismissLimit = 5 * time.Second

// Options describe a host that joins a gang, as a leader or as a member.
type Options struct {
	Host    string // this host's name; unique within a gang
	Address string // by which the others reach it
	Engine  string // digest of the engine's files: all hosts run the same
	TLS     TLS
	Logger  *slog.Logger
}

// Call is a leader's connection to its members. The caller must close it.
type Call struct {
	o        Options
	hosts    int
	work     Work
	listener net.Listener
	id       string
	quit     chan struct{} // closed by Close
	lost     chan struct{} // closed once err is set
	changed  chan struct{} // holds one token when a member has come, is ready or has gone

	mu      sync.Mutex
	members []*member // in the order of their joining
	err     error
	begun   bool   // orders are given
	store   string // the rendezvous to which members' ranks are relayed; "" until orders are given, or without TLS
	closed  bool
	serving sync.WaitGroup
}

// member is one host that has joined.
type member struct {
	host  string
	line  *line
	ready bool
}

// Open starts to listen for members on a port of the host's address.
func Open(o Options, hosts int, work Work) (*Call, error) {
	var secure *tls.Config
	if o.TLS.On() {
		var err error
		if secure, _, err = o.TLS.configs(); err != nil {
			return nil, fmt.Errorf("listen for other hosts: %w", err)
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(o.Address, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for other hosts: %w", err)
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	secret := make([]byte, 16)
	rand.Read(secret) // never fails
	c := &Call{
		o: o, hosts: hosts, work: work, listener: l, id: hex.EncodeToString(secret),
		quit: make(chan struct{}), lost: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	c.o.Logger = cmp.Or(o.Logger, slog.Default())
	go c.accept()
	return c, nil
}

// Invitation returns the invitation that members need.
func (c *Call) Invitation() Invitation {
	return Invitation{Address: c.listener.Addr().String(), ID: c.id}
}

// Gather waits until all places are taken and their hosts are ready. It sends each member its orders and returns the
// leader's own.
func (c *Call) Gather(ctx context.Context) (Orders, error) {
	for {
		if all := c.all(); all != nil {
			return c.order(all)
		}
		select {
		case <-ctx.Done():
			return Orders{}, fmt.Errorf("wait for %d other hosts, %s: %w", c.hosts-1, c.present(), context.Cause(ctx))
		case <-c.changed:
		}
	}
}

// all returns the members once every place is taken and ready.
func (c *Call) all() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	ready := func(m *member) bool { return m.ready }
	if len(c.members) < c.hosts-1 || slices.ContainsFunc(c.members, func(m *member) bool { return !ready(m) }) {
		return nil
	}
	c.begun = true
	return slices.Clone(c.members)
}

// present lists the hosts that have joined, for errors.
func (c *Call) present() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.members) == 0 {
		return "none has come"
	}
	var names []string
	for _, m := range c.members {
		name := m.host
		if !m.ready {
			name += " (without its devices)"
		}
		names = append(names, name)
	}
	return "there are " + strings.Join(names, ", ")
}

func (c *Call) order(all []*member) (Orders, error) {
	host := c.o.Address
	if c.o.TLS.On() {
		host = "127.0.0.1"
	}
	address, err := freePort(host)
	if err != nil {
		return Orders{}, err
	}
	if c.o.TLS.On() {
		c.set(func() { c.store = address })
	}
	out := Orders{Rendezvous: address, ID: c.id, Hosts: c.hosts}
	for i, m := range all {
		its := out
		its.Place = i + 1
		if err := m.line.write(message{Orders: &its}); err != nil {
			return Orders{}, fmt.Errorf("give host %s its orders: %w", m.host, err)
		}
	}
	return out, nil
}

// freePort finds a port for torchrun's store. Another process could take the port before the store listens there. The
// start then fails, and the next start finds another port.
func freePort(address string) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", fmt.Errorf("find a port for the rendezvous: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Lost is closed when a member with orders disconnects. Err then says why.
func (c *Call) Lost() <-chan struct{} { return c.lost }

// Err returns why the gang was lost, or nil if it was not.
func (c *Call) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close dismisses the members. It returns when they have ended their ranks and released their devices, or after
// dismissLimit. A second call does nothing.
func (c *Call) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	close(c.quit)
	members := slices.Clone(c.members)
	c.mu.Unlock()
	err := c.listener.Close()
	bye := "the leader has closed its engine"
	for _, m := range members {
		_ = m.line.write(message{Ended: &bye}) // it may have gone
	}
	gone := make(chan struct{})
	go func() { c.serving.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(dismissLimit):
		err = errors.Join(err, fmt.Errorf("dismiss %d hosts: not all have ended in %s", len(members), dismissLimit))
		for _, m := range members {
			m.line.conn.Close()
		}
	}
	return err
}
