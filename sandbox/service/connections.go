package service

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// connections bounds how many connections there are at once: each has buffers and goroutines of its own before it has
// said anything. One too many is told so in its own protocol and closed.
type connections struct {
	room   chan struct{} // holds one for each
	turned chan struct{} // holds one for each that is being turned away
}

// mostTurned bounds how many connections are told at once that there is no room; more are closed without a word.
const mostTurned = 64

// turnGrace is how long one that is turned away has to say which protocol it speaks, and to hear the answer.
const turnGrace = 2 * time.Second

func newConnections(most int) *connections {
	return &connections{room: make(chan struct{}, most), turned: make(chan struct{}, mostTurned)}
}

// admit takes room for a connection, which gives it back when it is closed; false says that there is none.
func (c *connections) admit(conn net.Conn) (net.Conn, bool) {
	select {
	case c.room <- struct{}{}:
		return &admitted{Conn: conn, free: sync.OnceFunc(func() { <-c.room })}, true
	default:
		return conn, false
	}
}

// count is how many connections there are.
func (c *connections) count() int { return len(c.room) }

type admitted struct {
	net.Conn
	free func()
}

func (a *admitted) Close() error {
	defer a.free()
	return a.Conn.Close()
}

// turnAway tells a connection that there is no room, and closes it.
func (c *connections) turnAway(conn net.Conn) {
	select {
	case c.turned <- struct{}{}:
	default:
		conn.Close()
		return
	}
	go func() {
		defer func() { <-c.turned }()
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(turnGrace))
		stream, begun, err := begin(conn)
		if err != nil {
			return
		}
		words := fmt.Sprintf("this service takes %d connections, and has them", cap(c.room))
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

// hangUp lets what was written arrive: a connection that is closed with something unread is reset.
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

// noRoom is an HTTP/1.1 response.
func noRoom(words string) []byte {
	body := fmt.Sprintf("{\"error\":{\"kind\":%q,\"message\":%q}}\n", kindNoRoom, words)
	return []byte(strings.Join([]string{
		fmt.Sprintf("HTTP/1.1 %d %s", http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable)),
		"Content-Type: application/json", "Retry-After: 1", "Connection: close", fmt.Sprintf("Content-Length: %d", len(body)), "", body,
	}, "\r\n"))
}
