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

// Between parent and mother, and between parent and a session's interpreter, lie SOCK_SEQPACKET pairs.
// Integers are in the machine's order, without padding (see session.py and cells.py).

// opening asks the mother for a session.
type opening struct {
	id        uint64
	memory    int64 // bytes beyond the interpreter's own
	file      int64 // bytes of one file
	processes int64
	room      int64 // bytes of the work folder
}

func (o opening) encode() []byte {
	b := []byte{'O'}
	for _, n := range []uint64{o.id, uint64(o.memory), uint64(o.file), uint64(o.processes), uint64(o.room)} {
		b = binary.NativeEndian.AppendUint64(b, n)
	}
	return b
}

// Kinds of a note.
const (
	noteBorn  = 'B' // descriptors of the session's init and interpreter come with it
	noteEnded = 'E' // the interpreter has ended, as it says
	noteDead  = 'D' // nothing of the session is left
)

// note is what the mother, or a session's init, says of a session.
type note struct {
	kind byte
	id   uint64
	wait unix.WaitStatus
	cpu  time.Duration // of the interpreter in all its life
	peak int64         // bytes that it had resident at most
}

// killed reports whether the note tells an interpreter's end by a SIGKILL.
func (n note) killed() bool { return n.wait.Signaled() && n.wait.Signal() == unix.SIGKILL }

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
	cellLookOut = 1  // few cells run: the interpreter looks out for the next one
	cellNoValue = 16 // the code's end has no value to show (NO_VALUE in serve.py)
)

// encodeCell returns a cell's packet and the descriptors that follow in a packet of their own, if any; whoever
// sends closes them.
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

// bundle returns the bytes of a head in JSON, and the head, the code and the files.
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
	packetEnd  = '.' // the cell's end: a letter, the interpreter's peak of memory, then text
	packetText = 't' // a piece of the text that is too long for the end
	packetFile = 'f' // a piece of a file that the cell hands over
)

// packet is one from an interpreter. Any of them may be forged by the code that runs there.
type packet struct {
	kind  byte
	nonce uint64
	body  []byte // valid until the next packet is read
}

// endHead is what stands before the text in a packet that ends a cell.
const endHead = 1 + 8

// decodeEnd reads the body of a packet that ends a cell: its letter, the KiB that the interpreter has had resident at
// most, and text.
func decodeEnd(body []byte) (kind byte, peak int64, text []byte, ok bool) {
	if len(body) < endHead || cellStatuses[body[0]] == "" {
		return 0, 0, nil, false
	}
	kib := min(binary.NativeEndian.Uint64(body[1:]), math.MaxInt64>>10) // the code there may say anything
	return body[0], int64(kib) << 10, body[endHead:], true
}

func decodePacket(b []byte) (packet, error) {
	if len(b) < 9 {
		return packet{}, fmt.Errorf("read answer: got %d bytes, want 9 or more", len(b))
	}
	return packet{kind: b[0], nonce: binary.NativeEndian.Uint64(b[1:]), body: b[9:]}, nil
}
