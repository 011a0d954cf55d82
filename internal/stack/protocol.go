package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// The protocol between a command and the supervisor: JSON messages, one per line, over a Unix socket. The command first
// sends join; progress messages and one of ready, failed or stopping answer it. Then it may send peak any number of
// times, and leave. Closing the connection also leaves.

// request is a message from a command.
type request struct {
	Op   string `json:"op"`             // join, peak or leave
	Need Need   `json:"need,omitempty"` // join
	// Temporal and S3 are the existing servers that the command's environment selects; empty for none.
	Temporal string `json:"temporal,omitempty"`
	S3       string `json:"s3,omitempty"`
	// Namespace and Bucket are the ones that the command would use.
	Namespace string `json:"namespace,omitempty"`
	Bucket    string `json:"bucket,omitempty"`
	Reset     bool   `json:"reset,omitempty"` // peak: start from zero after the answer
}

// reply is a message from the supervisor.
type reply struct {
	// Kind: progress (any time), ready, failed, stopping (the answers to join), peak, left, or lost
	// (any time after ready: a part that the command needs was given up).
	Kind      string    `json:"kind"`
	Text      string    `json:"text,omitempty"`
	Addresses Addresses `json:"addresses,omitzero"`
	Bytes     int64     `json:"bytes,omitempty"`   // peak
	Others    int       `json:"others,omitempty"`  // peak: other commands that hold the stack
	Last      bool      `json:"last,omitempty"`    // left: no lease remains, the stack stops now
	Damaged   bool      `json:"damaged,omitempty"` // failed, lost: the error is a DamagedError
	Bad       bool      `json:"bad,omitempty"`     // failed, lost: the caller can mend it (badinput.Error)
}

// failed returns a reply of a kind that carries an error; failure is its inverse.
func failed(kind string, err error) reply {
	var damaged *DamagedError
	var bad badinput.Error
	return reply{Kind: kind, Text: err.Error(), Damaged: errors.As(err, &damaged), Bad: errors.As(err, &bad)}
}

func (r reply) failure() error {
	if r.Damaged {
		return &DamagedError{text: r.Text}
	}
	if r.Bad {
		return badinput.Of(errors.New(r.Text))
	}
	return errors.New(r.Text)
}

// wire sends and receives messages; sends may be concurrent.
type wire struct {
	conn net.Conn
	dec  *json.Decoder
	mu   sync.Mutex
}

func newWire(conn net.Conn) *wire { return &wire{conn: conn, dec: json.NewDecoder(conn)} }

// sendTimeout bounds how long a suspended peer with a full socket can delay the sender.
const sendTimeout = 2 * time.Second

func (w *wire) send(m any) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = w.conn.Write(append(text, '\n'))
	return err
}

func (w *wire) receive(m any) error { return w.dec.Decode(m) }
func (w *wire) close()              { _ = w.conn.Close() }
