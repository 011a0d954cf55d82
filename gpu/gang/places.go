package gang

import (
	"fmt"
	"net"
	"slices"
)

// accept accepts members until the listener closes.
func (c *Call) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			conn.Close()
			return
		}
		c.serving.Add(1)
		c.mu.Unlock()
		go func() {
			defer c.serving.Done()
			defer conn.Close()
			c.serve(conn)
		}()
	}
}

// serve handles one connection until it ends.
func (c *Call) serve(conn net.Conn) {
	l, err := c.handshake(conn)
	var first message
	if err == nil {
		first, err = l.read()
	}
	switch {
	case err != nil:
	case first.Meet != "":
		if err = c.relay(l, first.Meet); err == nil {
			return
		}
	case first.Join == nil:
		err = errMessage
	}
	if err != nil {
		c.o.Logger.Warn("turned away a connection to the gang", "from", conn.RemoteAddr().String(), "error", err)
		return
	}
	m := &member{host: first.Join.Host, line: l}
	if no := c.addMember(*first.Join, m); no != nil {
		_ = l.write(message{Refused: no})
		return
	}
	beating := make(chan struct{})
	defer close(beating)
	go l.beat(beating)
	err = l.write(message{Welcome: &c.work})
	for err == nil {
		var got message
		switch got, err = l.read(); {
		case err != nil:
		case got.Ended != nil:
			err = fmt.Errorf("its ranks ended: %s", *got.Ended)
		case got.Ready:
			c.set(func() { m.ready = true })
		default:
			err = errMessage
		}
	}
	c.removeMember(m, err)
}

// addMember gives a member a place, or returns why there is none for it.
func (c *Call) addMember(j join, m *member) *refused {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed || j.ID != c.id:
		return &refused{Reason: "there is no such gang"}
	case j.Engine != c.o.Engine:
		return &refused{
			Reason:    fmt.Sprintf("host %s has another version of the engine than host %s", j.Host, c.o.Host),
			Elsewhere: true,
		}
	case j.Host == c.o.Host || slices.ContainsFunc(c.members, func(o *member) bool { return o.host == j.Host }):
		return &refused{Reason: fmt.Sprintf("host %s has a place already", j.Host), Elsewhere: true}
	case c.begun:
		return &refused{Reason: "all places are taken"}
	case len(c.members) == c.hosts-1: // until one of them gives its place up, or is found to have gone
		return &refused{Reason: "all places are taken for now", Elsewhere: true}
	}
	c.members = append(c.members, m)
	return nil
}

// set makes a change under the lock and wakes Gather.
func (c *Call) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// removeMember removes a member. Before the orders are sent, another host may take its place. After that, the gang is
// lost.
func (c *Call) removeMember(m *member, why error) {
	c.set(func() {
		if c.begun && !c.closed && c.err == nil {
			c.err = fmt.Errorf("host %s is lost: %w", m.host, why)
			close(c.lost)
		}
		if !c.begun {
			c.members = slices.DeleteFunc(c.members, func(o *member) bool { return o == m })
		}
	})
}
