package e2e

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// distance is a network between workers and servers: every byte is late, and connections break.
type distance struct {
	late  time.Duration // of every byte, each way
	lasts time.Duration // a connection, on average

	mu     sync.Mutex
	rng    *rand.Rand
	broken atomic.Int64 // connections
}

// between puts the distance in front of the servers that variables KEY=VALUE name, and returns the variables.
func (d *distance) between(t *testing.T, variables []string) (out []string) {
	t.Helper()
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		address := strings.TrimPrefix(value, "http://")
		if _, _, err := net.SplitHostPort(address); err == nil {
			value = strings.TrimSuffix(value, address) + d.listen(t, address)
		}
		out = append(out, name+"="+value)
	}
	require.NotEqual(t, variables, out, "no variable names an address")
	return out
}

func (d *distance) listen(t *testing.T, server string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go d.carry(from, server)
		}
	}()
	return l.Addr().String()
}

// carry carries one connection until a side ends it or it breaks.
func (d *distance) carry(from net.Conn, server string) {
	defer from.Close()
	to, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer to.Close()
	d.mu.Lock()
	lasts := time.Duration(d.rng.ExpFloat64() * float64(d.lasts))
	d.mu.Unlock()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			d.copy(way[1], way[0])
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-time.After(lasts):
		d.broken.Add(1)
	}
}

// copy copies bytes, each of which arrives late. What is on its way when one side ends still arrives.
func (d *distance) copy(to io.Writer, from io.Reader) {
	type part struct {
		bytes []byte
		due   time.Time
	}
	parts := make(chan part, 1024)
	go func() {
		defer close(parts)
		for {
			buffer := make([]byte, 64<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				parts <- part{buffer[:n], time.Now().Add(d.late)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range parts {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			for range parts { // so that the reader ends
			}
			return
		}
	}
}
