package service

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// connections bounds how many connections are open at once, because each has buffers and goroutines before it has sent
// anything. A connection beyond the limit gets a refusal in its own protocol and is closed.
type connections struct {
	room     chan struct{} // holds one item for each connection
	refusing chan struct{} // holds one item for each connection that is being refused
}

// mostRefusing bounds how many connections are being refused at once. Others are closed without an answer.
const mostRefusing = 64

// refuseGrace is how long a connection that is refused has to show its protocol and to read the answer.
const refuseGrace = 2 * time.Second

func newConnections(most int) *connections {
	return &connections{room: make(chan struct{}, most), refusing: make(chan struct{}, mostRefusing)}
}

// admit reserves room for a connection, which releases it when it is closed. It returns false if there is no room.
func (c *connections) admit(conn net.Conn) (net.Conn, bool) {
	select {
	case c.room <- struct{}{}:
		return &admitted{Conn: conn, free: sync.OnceFunc(func() { <-c.room })}, true
	default:
		return conn, false
	}
}

// count returns how many connections are open.
func (c *connections) count() int { return len(c.room) }

type admitted struct {
	net.Conn
	free func()
}

// Close closes the connection and releases its room.
func (a *admitted) Close() error {
	defer a.free()
	return a.Conn.Close()
}

// refuse tells a connection that there is no room, and closes it.
func (c *connections) refuse(conn net.Conn) {
	select {
	case c.refusing <- struct{}{}:
	default:
		conn.Close()
		return
	}
	go func() {
		defer func() { <-c.refusing }()
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(refuseGrace))
		stream, begun, err := begin(conn)
		if err != nil {
			return
		}
		words := fmt.Sprintf("this service has reached its limit of %d connections", cap(c.room))
		answer := noRoom(words)
		if stream {
			if answer, err = refuseStream(begun, words); err != nil {
				return
			}
		}
		_, _ = begun.Write(answer)
		hangUp(begun)
	}()
}

// hangUp closes a connection after the client has read what was written. If a connection is closed with unread input,
// it is reset.
func hangUp(conn net.Conn) {
	if c, ok := conn.(*begunConn); ok {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	for buffer := make([]byte, 4096); ; {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}

// noRoom returns an HTTP/1.1 response.
func noRoom(words string) []byte {
	body := fmt.Sprintf("{\"error\":{\"kind\":%q,\"message\":%q}}\n", kindNoRoom, words)
	return []byte(strings.Join([]string{
		fmt.Sprintf("HTTP/1.1 %d %s", http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable)),
		"Content-Type: application/json", "Retry-After: 1", "Connection: close",
		fmt.Sprintf("Content-Length: %d", len(body)), "", body,
	}, "\r\n"))
}
