package gang

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// mostSilence is how long a peer may be silent before it counts as gone. A live peer sends a message every
// beatInterval.
const (
	mostSilence  = 10 * time.Second
	beatInterval = 2 * time.Second
)

// maxMessage bounds a line, in bytes.
const maxMessage = 64 << 10

// Invitation is what a member needs in order to join.
type Invitation struct {
	Address string `json:"address"` // the leader's, HOST:PORT
	ID      string `json:"id"`      // of this gang, random
}

// Work describes the ranks that a member must run. They are the same as the leader's.
type Work struct {
	Ranks            int    `json:"ranks"` // on each host, a device each where Device is not the processor
	Device           string `json:"device"`
	Dtype            string `json:"dtype"`
	Deterministic    bool   `json:"deterministic"`
	Checkpointing    string `json:"checkpointing"`
	OffloadOptimizer bool   `json:"offload_optimizer"`
	Memory           int64  `json:"memory"` // that each device needs free, in bytes
}

// Orders say where the ranks of all hosts meet.
type Orders struct {
	// Rendezvous is HOST:PORT on the leader's host. With TLS it is on loopback of each host: a member's leads there
	// through the leader's port.
	Rendezvous string `json:"rendezvous"`
	ID         string `json:"id"` // of the rendezvous
	Hosts      int    `json:"hosts"`
	Place      int    `json:"place"` // of this host: 0 is the leader's
}

// message is a line on the connection; exactly one field is set.
type message struct {
	Join    *join    `json:"join,omitempty"`    // a member's first
	Meet    string   `json:"meet,omitempty"`    // or the gang's ID: the connection's next bytes are for its rendezvous
	Refused *refused `json:"refused,omitempty"` // the leader's answer, or
	Welcome *Work    `json:"welcome,omitempty"`
	Ready   bool     `json:"ready,omitempty"`  // the member has its devices
	Orders  *Orders  `json:"orders,omitempty"` // once all are ready
	Beat    bool     `json:"beat,omitempty"`   // either
	Ended   *string  `json:"ended,omitempty"`  // why this side ends; nothing follows
}

type join struct {
	ID     string `json:"id"`
	Host   string `json:"host"`
	Engine string `json:"engine"` // digest of the engine's files
}

type refused struct {
	Reason string `json:"reason"`
	// Elsewhere: another host could have the place.
	Elsewhere bool `json:"elsewhere"`
}

// errMessage is the error for a message that no version of this package sends.
var errMessage = errors.New("it speaks another language")

// line is a connection that carries messages. Its write method is safe for concurrent use; its read method is not.
type line struct {
	conn    net.Conn
	in      *bufio.Reader
	writing sync.Mutex
}

func newLine(c net.Conn) *line {
	return &line{conn: c, in: bufio.NewReaderSize(c, maxMessage)}
}

func (l *line) write(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(mostSilence))
	_, err = l.conn.Write(append(text, '\n'))
	return err
}

// peek waits for the first byte of the next message, and returns it.
func (l *line) peek() (byte, error) {
	_ = l.conn.SetReadDeadline(time.Now().Add(mostSilence))
	first, err := l.in.Peek(1)
	if err != nil {
		return 0, lostPeer(err)
	}
	return first[0], nil
}

// read returns the next message that is not a beat.
func (l *line) read() (message, error) {
	for {
		_ = l.conn.SetReadDeadline(time.Now().Add(mostSilence))
		text, err := l.in.ReadSlice('\n')
		if err != nil {
			return message{}, lostPeer(err)
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			return message{}, fmt.Errorf("%w: %w", errMessage, err)
		}
		if !m.Beat {
			return m, nil
		}
	}
}

// lostPeer describes how a connection ended.
func lostPeer(err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("its connection ended")
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("it has said nothing for %s", mostSilence)
	}
	return err
}

// beat sends beats until quit is closed or the connection ends.
func (l *line) beat(quit <-chan struct{}) {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
			if l.write(message{Beat: true}) != nil {
				return
			}
		}
	}
}
