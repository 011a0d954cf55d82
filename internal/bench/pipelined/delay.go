package pipelined

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// delay accepts connections and forwards them to an address. What comes back from there arrives later by a set time,
// in order, however much is on the way: a call through it waits so much longer, and many calls wait together.
type delay struct {
	listener net.Listener
	to       string
	late     atomic.Int64 // nanoseconds
	open     sync.WaitGroup
}

func delayed(to string) (*delay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &delay{listener: l, to: to}
	d.open.Go(d.serve)
	return d, nil
}

func (d *delay) address() string { return d.listener.Addr().String() }

// close ends the listener; connections end with their clients.
func (d *delay) close() {
	d.listener.Close()
	d.open.Wait()
}

func (d *delay) serve() {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return
		}
		go d.forward(client)
	}
}

// piece is what was read at once.
type piece struct {
	data []byte
	due  time.Time
}

func (d *delay) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", d.to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client) // an error ends the connection, as it does without a delay
		server.Close()
	}()
	way := make(chan piece, 1<<12)
	go func() {
		defer close(way)
		for {
			buffer := make([]byte, 64<<10)
			n, err := server.Read(buffer)
			if n > 0 {
				way <- piece{buffer[:n], time.Now().Add(time.Duration(d.late.Load()))}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range way {
		time.Sleep(time.Until(p.due))
		if _, err := client.Write(p.data); err != nil {
			break
		}
	}
	server.Close() // so that the reader ends
	for range way {
	}
}
