package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
)

// A frame is: magic, length of the header (uint32), length of the body (uint64), header, body; numbers little-endian.
const (
	magic     = "RWEP"
	prefix    = 16
	maxHeader = 1 << 20
	// MaxBody is the protocol's bound; a reader may set a lower one.
	MaxBody = 16 << 30
)

// step is the most memory, in bytes, that a reader makes for a body beyond what has arrived, so that a
// length alone costs its sender more than it costs the reader.
const step = 16 << 20

// Frame is one message.
type Frame struct {
	Header []byte // JSON
	Body   []byte // a safetensors file, aligned to 8 bytes, or nil
}

// Reader reads the frames of one stream.
type Reader struct {
	r       io.Reader
	maxBody atomic.Uint64
}

// NewReader reads frames whose bodies have at most maxBody bytes.
func NewReader(r io.Reader, maxBody uint64) *Reader {
	out := &Reader{r: r}
	out.Expect(maxBody)
	return out
}

// Expect sets the bound of the bodies whose frames have not begun to arrive. It may be called while Next waits.
func (r *Reader) Expect(maxBody uint64) { r.maxBody.Store(min(maxBody, MaxBody)) }

// Next reads one frame. At the end of the stream between two frames the error is io.EOF, within one
// io.ErrUnexpectedEOF; lengths out of bounds are ErrProtocol.
func (r *Reader) Next() (Frame, error) {
	var head [prefix]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return Frame{}, err
	}
	h, b, most := uint64(binary.LittleEndian.Uint32(head[4:])), binary.LittleEndian.Uint64(head[8:]), r.maxBody.Load()
	switch {
	case string(head[:4]) != magic:
		return Frame{}, broken("a frame begins with %q", head[:4])
	case h < 2 || h > maxHeader:
		return Frame{}, broken("a header of %d bytes, allowed are 2 to %d", h, maxHeader)
	case b != 0 && b < 8 || b > most:
		return Frame{}, broken("a body of %d bytes, allowed are 0 or 8 to %d", b, most)
	}
	f := Frame{Header: make([]byte, h)}
	if _, err := io.ReadFull(r.r, f.Header); err != nil {
		return Frame{}, cut(err)
	}
	if b == 0 {
		return f, nil
	}
	var err error
	f.Body, err = readBody(r.r, b)
	return f, err
}

// readBody reads n bytes into memory that grows with what arrives.
func readBody(r io.Reader, n uint64) ([]byte, error) {
	body := aligned(min(n, step))
	for got := uint64(0); ; {
		if _, err := io.ReadFull(r, body[got:]); err != nil {
			return nil, cut(err)
		}
		if got = uint64(len(body)); got == n {
			return body, nil
		}
		next := aligned(min(n, max(2*got, got+step)))
		copy(next, body)
		body = next
	}
}

// cut is an error within a frame: its end there is not an end of the stream.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// WriteFrame writes a message's header and the arrays of its body, where there are any; the arrays' bytes
// are not copied.
func WriteFrame(w io.Writer, message any, arrays ...Array) error {
	header, err := encodeHeader(message)
	if err != nil {
		return err
	}
	table, size, err := layout(arrays)
	if err != nil {
		return err
	}
	if size > MaxBody {
		return broken("a body of %d bytes, allowed are %d", size, uint64(MaxBody))
	}
	head := append(make([]byte, 0, prefix+len(header)+len(table)), magic...)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(header)))
	head = binary.LittleEndian.AppendUint64(head, size)
	parts := net.Buffers{append(append(head, header...), table...)}
	for _, a := range arrays {
		if len(a.Raw) > 0 {
			parts = append(parts, a.Raw)
		}
	}
	if _, err := parts.WriteTo(w); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}
