package zygote

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
)

// The link is a SOCK_SEQPACKET pair: each message is one packet, and descriptors travel with it. Integers have the
// machine's byte order, without padding (see REQUEST and REPLY in serve.py).

const (
	// mostInline is how many bytes of code fit in the request packet; longer code is sent as a memory file.
	mostInline = 32 << 10
	replySize  = 8 + 4 + 8 + 8 + 4 + 1 + 1 + 4
	mostRecord = 64 << 10
)

// Flags of a request. All but the last say which descriptors follow those of stdout and stderr, in this order.
const (
	flagStdin = 1 << iota
	flagFiles
	flagCode
	flagCollect // names of files to collect; an empty memory file for these files is the last descriptor
	flagNoValue // the code's last statement has no value to show
)

// Flags of a reply.
const (
	flagTooMuch  = 1 << iota // the collected files exceed the limit and are left out
	flagCPULimit             // the kernel's CPU limit sent the signal that ended the call
)

// request asks a zygote to run a call.
type request struct {
	id         uint64
	flags      uint32
	cpuSeconds uint32
	processes  uint32
	memory     uint64 // bytes
	file       uint64 // bytes of one file
	code       string // "" if it is sent as a file
	extra      []byte // JSON of extra; nil if there is none
}

// extra holds what most calls do not have.
type extra struct {
	Files [][2]any `json:"files,omitempty"` // name and size of each, in the order of the archive
	Argv  []string `json:"argv,omitempty"`  // command of another interpreter
	File  string   `json:"file,omitempty"`  // the file for its code
}

func (r request) encode(b []byte) []byte {
	order := binary.NativeEndian
	b = order.AppendUint64(b[:0], r.id)
	for _, n := range []uint32{r.flags, r.cpuSeconds, r.processes} {
		b = order.AppendUint32(b, n)
	}
	b = order.AppendUint64(b, r.memory)
	b = order.AppendUint64(b, r.file)
	b = order.AppendUint32(b, uint32(len(r.code)))
	b = order.AppendUint32(b, uint32(len(r.extra)))
	b = append(b, r.code...)
	return append(b, r.extra...)
}

// reply is what a zygote sends once a call and everything that it started has ended.
type reply struct {
	id     uint64
	wait   unix.WaitStatus
	cpu    time.Duration
	peak   int64 // most resident memory in bytes
	flags  uint32
	begun  bool // the code has begun
	kind   byte // of the record; 0 if there is no record
	record string
}

func decodeReply(b []byte) (reply, error) {
	if len(b) < replySize {
		return reply{}, fmt.Errorf("read reply: got %d bytes, want at least %d", len(b), replySize)
	}
	order := binary.NativeEndian
	r := reply{
		id:    order.Uint64(b),
		wait:  unix.WaitStatus(order.Uint32(b[8:])),
		cpu:   time.Duration(order.Uint64(b[12:])) * time.Microsecond,
		peak:  int64(order.Uint64(b[20:])),
		flags: order.Uint32(b[28:]),
		begun: b[32] != 0,
		kind:  b[33],
	}
	if length := order.Uint32(b[34:]); uint64(length) != uint64(len(b)-replySize) {
		return reply{}, fmt.Errorf("read reply: its record has %d bytes, want %d", len(b)-replySize, length)
	}
	r.record = string(b[replySize:])
	return r, nil
}

// link is the parent's end of the link. Only the zygote's owner uses it.
type link struct {
	fd     int
	buffer []byte
}

// newLink returns the parent's end and the zygote's end.
func newLink() (*link, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make link: %w", err)
	}
	return &link{fd: pair[0], buffer: make([]byte, replySize+mostRecord)}, os.NewFile(uintptr(pair[1]), "link"), nil
}

func (l *link) close() {
	if l.fd >= 0 {
		unix.Close(l.fd)
	}
	l.fd = -1
}

func (l *link) send(r request, fds []int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	// MSG_NOSIGNAL: the zygote may have ended. A packet fits into the buffer of an idle link, so this does not block.
	return onEINTR(func() error { return unix.Sendmsg(l.fd, r.encode(l.buffer), rights, nil, unix.MSG_NOSIGNAL) })
}

// receive reads a packet that has arrived.
func (l *link) receive() ([]byte, error) {
	var n int
	err := onEINTR(func() (err error) {
		n, err = unix.Read(l.fd, l.buffer)
		return err
	})
	if err == nil && n == 0 {
		err = errors.New("it closed its end")
	}
	return l.buffer[:max(n, 0)], err
}

// receiveWith reads a packet that has arrived, and its descriptors.
func (l *link) receiveWith() (said string, fds []int, err error) {
	extra := make([]byte, unix.CmsgSpace(4*4))
	var n, extended int
	err = onEINTR(func() (err error) {
		n, extended, _, _, err = unix.Recvmsg(l.fd, l.buffer, extra, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	if err == nil && n == 0 {
		err = errors.New("it closed its end")
	}
	if err != nil {
		return "", nil, err
	}
	return string(l.buffer[:n]), rights(extra[:extended]), nil
}

// onEINTR repeats a system call as long as signals interrupt it.
func onEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// pipe returns a read end that never blocks and a write end that does, as programs expect of their standard output.
func pipe() (ends [2]int, err error) {
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return ends, fmt.Errorf("make pipe: %w", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return ends, fmt.Errorf("make pipe: %w", err)
	}
	return ends, nil
}

// memoryFile returns a descriptor of an unnamed file in memory, positioned at its start.
func memoryFile(parts ...[]byte) (int, error) {
	fd, err := unix.MemfdCreate("call", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make file in memory: %w", err)
	}
	var at int64
	for _, part := range parts {
		for len(part) > 0 {
			n, err := unix.Pwrite(fd, part[:min(len(part), 1<<20)], at)
			if err != nil && err != unix.EINTR {
				unix.Close(fd)
				return -1, fmt.Errorf("write file in memory: %w", err)
			}
			at += int64(max(n, 0))
			part = part[max(n, 0):]
		}
	}
	return fd, nil
}

// extraOf returns the JSON of what a call has beyond code and stdin; nil if it has nothing more.
func extraOf(call sandbox.Call, other *Interpreter) ([]byte, error) {
	if len(call.Files) == 0 && other == nil {
		return nil, nil
	}
	var x extra
	for _, f := range call.Files {
		x.Files = append(x.Files, [2]any{f.Name, len(f.Content)})
	}
	if other != nil {
		x.Argv, x.File = other.command()
	}
	return json.Marshal(x)
}

// collected reads the files that a process of the zygote has written to the memory file, and closes the descriptor.
func collected(fd int, names []string) ([]sandbox.File, error) {
	file := os.NewFile(uintptr(fd), "found")
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read collected files: %w", err)
	}
	all := make([]byte, info.Size())
	if _, err := file.ReadAt(all, 0); err != nil {
		return nil, fmt.Errorf("read collected files: %w", err)
	}
	if len(all) < 4 || int64(len(all)) < 4+int64(binary.NativeEndian.Uint32(all)) {
		return nil, errors.New("read collected files: their index is cut off")
	}
	size := binary.NativeEndian.Uint32(all)
	var index [][2]int
	if err := json.Unmarshal(all[4:4+size], &index); err != nil {
		return nil, fmt.Errorf("read collected files' index: %w", err)
	}
	rest := all[4+size:]
	var files []sandbox.File
	for _, entry := range index {
		at, n := entry[0], entry[1]
		if at < 0 || at >= len(names) || n < 0 || n > len(rest) {
			return nil, fmt.Errorf("read collected files: index entry %v does not fit", entry)
		}
		files = append(files, sandbox.File{Name: names[at], Content: rest[:n:n]})
		rest = rest[n:]
	}
	return files, nil
}
