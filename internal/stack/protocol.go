package stack

import (
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"
)

// The protocol between a command and the supervisor: JSON messages, one a line, over a unix socket.
// The command says join first; progress messages and one of ready, failed or stopping answer it.
// Then it may ask peak any number of times, and leave. Closing the connection leaves, too.

// request is what a command says.
type request struct {
	Op   string `json:"op"`             // join, peak or leave
	Need Need   `json:"need,omitempty"` // join
	// Temporal and S3 are the existing servers that the command's environment selects; empty for none.
	Temporal string `json:"temporal,omitempty"`
	S3       string `json:"s3,omitempty"`
	// Namespace and Bucket are the ones that the command would use.
	Namespace string `json:"namespace,omitempty"`
	Bucket    string `json:"bucket,omitempty"`
	Reset     bool   `json:"reset,omitempty"` // peak: start anew after the answer
}

// reply is what the supervisor says.
type reply struct {
	// Kind: progress (any time), ready, failed, stopping (the answers to join), peak, left, or lost
	// (any time after ready: a part that the command needs was given up).
	Kind      string    `json:"kind"`
	Text      string    `json:"text,omitempty"`
	Addresses Addresses `json:"addresses,omitzero"`
	Bytes     int64     `json:"bytes,omitempty"` // peak
	Last      bool      `json:"last,omitempty"`  // left: no lease remains, the stack stops now
}

// wire sends and receives messages; sends may be concurrent.
type wire struct {
	conn net.Conn
	dec  *json.Decoder
	mu   sync.Mutex
}

func newWire(conn net.Conn) *wire { return &wire{conn: conn, dec: json.NewDecoder(conn)} }

// sendTimeout bounds how long a suspended peer with a full socket can hold up the sender.
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
