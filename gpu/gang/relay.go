package gang

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// storePoll is the time between attempts to reach a rendezvous that does not listen yet.
const storePoll = 100 * time.Millisecond

// relay connects a member's ranks with the rendezvous of rank 0, until either side ends or the call closes.
func (c *Call) relay(l *line, id string) error {
	c.mu.Lock()
	store := c.store
	if id != c.id || c.closed {
		store = ""
	}
	c.mu.Unlock()
	if store == "" {
		return errors.New("there is no such gang, or its hosts are not gathered")
	}
	for {
		conn, err := net.Dial("tcp", store)
		if err == nil {
			splice(l.stream(), conn, c.quit)
			return nil
		}
		select {
		case <-c.quit:
			return nil
		case <-time.After(storePoll): // rank 0 may still be starting
		}
	}
}

// forward listens on loopback for this host's ranks, and connects them with the rendezvous through the leader's port,
// until the place is left or the gang ends.
func (p *Membership) forward() (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(p.over, func() { listener.Close() })
	go func() {
		for {
			rank, err := listener.Accept()
			if err != nil {
				return
			}
			go p.forwardConn(rank)
		}
	}()
	return listener.Addr().String(), nil
}

// forwardConn connects one connection of a rank. If that fails, the rank tries again.
func (p *Membership) forwardConn(rank net.Conn) {
	defer rank.Close()
	conn, err := p.o.dial(p.over, p.i.Address)
	if err == nil {
		defer conn.Close()
		err = newLine(conn).write(message{Meet: p.i.ID})
	}
	if err != nil {
		p.o.Logger.Warn("connect ranks with rank 0", "gang", p.i.Address, "error", err)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	splice(rank, conn, p.over.Done())
}

// stream is the connection behind a line, without the messages that have been read.
type stream struct {
	net.Conn
	in io.Reader
}

// Read implements net.Conn.
func (s stream) Read(p []byte) (int, error) { return s.in.Read(p) }

func (l *line) stream() stream {
	_ = l.conn.SetDeadline(time.Time{})
	return stream{l.conn, l.in}
}

// splice copies in both directions until one side ends or quit is closed. Then it closes both.
func splice(a, b net.Conn, quit <-chan struct{}) {
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-quit:
	}
	a.Close()
	b.Close()
}
