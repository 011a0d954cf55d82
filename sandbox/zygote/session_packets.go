package zygote

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

// SOCK_SEQPACKET pairs connect the parent with the fork server, and the parent with a session's interpreter. Integers
// have the machine's byte order, without padding (see session.py and cells.py).

// opening asks the fork server for a session.
type opening struct {
	id        uint64
	memory    int64 // bytes, on top of the interpreter's own
	file      int64 // bytes of one file
	processes int64
	room      int64 // size of the work folder in bytes
	user      int64 // in the fork server's namespace; 0 means that of the fork server
}

func (o opening) encode() []byte {
	b := []byte{'O'}
	for _, n := range []uint64{o.id, uint64(o.memory), uint64(o.file), uint64(o.processes), uint64(o.room),
		uint64(o.user)} {
		b = binary.NativeEndian.AppendUint64(b, n)
	}
	return b
}

// Kinds of a note.
const (
	// comes with descriptors of the session's init and interpreter, and one that reports kills if there is one
	noteStarted = 'B'
	noteEnded   = 'E' // the interpreter has ended, with this wait status
	noteLimit   = 'L' // the same, by a signal of a CPU limit that the code has set
	noteGone    = 'D' // all processes of the session have ended
)

// note is what the fork server, or a session's init, reports about a session.
type note struct {
	kind byte
	id   uint64
	wait unix.WaitStatus
	cpu  time.Duration // used by the interpreter in its whole life
	peak int64         // its most resident memory in bytes
}

// isEnd reports whether the note says how the interpreter ended.
func (n note) isEnd() bool { return n.kind == noteEnded || n.kind == noteLimit }

const noteSize = 1 + 8 + 4 + 8 + 8

func decodeNote(b []byte) (note, error) {
	if len(b) != noteSize {
		return note{}, fmt.Errorf("read note: got %d bytes, want %d", len(b), noteSize)
	}
	return note{
		kind: b[0],
		id:   binary.NativeEndian.Uint64(b[1:]),
		wait: unix.WaitStatus(binary.NativeEndian.Uint32(b[9:])),
		cpu:  time.Duration(binary.NativeEndian.Uint64(b[13:])) * time.Microsecond,
		peak: int64(binary.NativeEndian.Uint64(b[21:])) << 10,
	}, nil
}

// Flags of a cell.
const (
	cellSpin    = 1  // few cells run, so the interpreter spins while it waits for the next one
	cellNoValue = 16 // the code's last statement has no value to show (NO_VALUE in serve.py)
)

// encodeCell returns a cell's packet and the descriptors that follow in a packet of their own, if there are any. The
// caller closes them after sending.
func encodeCell(into []byte, nonce uint64, flags byte, cell sandbox.Call) (packet []byte, fds []int, err error) {
	if showsNothing(cell.Code) {
		flags |= cellNoValue
	}
	if cell.Stdin == "" && len(cell.Files) == 0 && len(cell.Collect) == 0 && len(cell.Code) <= mostInline {
		packet = binary.NativeEndian.AppendUint64(append(into[:0], 'c'), nonce)
		return append(append(packet, flags), cell.Code...), nil, nil
	}
	head, parts, err := bundle(cell)
	if err != nil {
		return nil, nil, err
	}
	contents := [][][]byte{parts}
	if cell.Stdin != "" {
		contents = append(contents, [][]byte{[]byte(cell.Stdin)})
	}
	for _, content := range contents {
		fd, err := memoryFile(content...)
		if err != nil {
			closeAll(fds)
			return nil, nil, err
		}
		fds = append(fds, fd)
	}
	packet = binary.NativeEndian.AppendUint64(append(into[:0], 'b'), nonce)
	return binary.NativeEndian.AppendUint64(append(packet, flags), uint64(head)), fds, nil
}

// bundle returns the length of a JSON head, and the parts: the head, the code and the files.
func bundle(cell sandbox.Call) (head int, parts [][]byte, err error) {
	files := make([][2]any, len(cell.Files))
	for i, f := range cell.Files {
		files[i] = [2]any{f.Name, len(f.Content)}
	}
	collect := append([]string{}, cell.Collect...)
	b, err := json.Marshal(map[string]any{"code": len(cell.Code), "files": files, "collect": collect})
	if err != nil {
		return 0, nil, fmt.Errorf("encode cell: %w", err)
	}
	parts = [][]byte{b, []byte(cell.Code)}
	for _, f := range cell.Files {
		parts = append(parts, f.Content)
	}
	return len(b), parts, nil
}

// Kinds of a packet from an interpreter.
const (
	packetEnd  = '.' // the cell's end: a letter, the interpreter's peak memory, then text
	packetText = 't' // a piece of text that is too long for the end packet
	packetFile = 'f' // a piece of a file that the cell sends
)

// packet comes from an interpreter. The code that runs there can forge any packet.
type packet struct {
	kind  byte
	nonce uint64
	body  []byte // valid until the next packet is read
}

// endHead is the size of the fields before the text in a packet that ends a cell.
const endHead = 1 + 8

// decodeEnd parses the body of a packet that ends a cell: its letter, the most resident memory of the interpreter in
// KiB, and text.
func decodeEnd(body []byte) (kind byte, peak int64, text []byte, ok bool) {
	if len(body) < endHead || cellStatuses[body[0]] == "" {
		return 0, 0, nil, false
	}
	kib := min(binary.NativeEndian.Uint64(body[1:]), math.MaxInt64>>10) // the code can forge any number
	return body[0], int64(kib) << 10, body[endHead:], true
}

func decodePacket(b []byte) (packet, error) {
	if len(b) < 9 {
		return packet{}, fmt.Errorf("read answer: got %d bytes, want 9 or more", len(b))
	}
	return packet{kind: b[0], nonce: binary.NativeEndian.Uint64(b[1:]), body: b[9:]}, nil
}
