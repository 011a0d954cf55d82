package zygote

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The link is a SOCK_SEQPACKET pair: a message is a packet, and descriptors travel with it.
// Integers are in the machine's order, without padding (see REQUEST and REPLY in serve.py).

const (
	requestRun  = 'R'
	requestKill = 'K'
	flagStdin   = 1
	requestSize = 1 + 8 + 4 + 4 + 8 + 8
	replySize   = 8 + 4 + 8
)

// request asks a zygote to run a call or to kill the one that it runs.
type request struct {
	kind       byte
	id         uint64
	flags      uint32
	cpuSeconds uint32
	memory     uint64 // bytes
	size       uint64 // of the code, in bytes
}

func (r request) encode() []byte {
	b := make([]byte, 0, requestSize)
	b = append(b, r.kind)
	b = binary.NativeEndian.AppendUint64(b, r.id)
	b = binary.NativeEndian.AppendUint32(b, r.flags)
	b = binary.NativeEndian.AppendUint32(b, r.cpuSeconds)
	b = binary.NativeEndian.AppendUint64(b, r.memory)
	return binary.NativeEndian.AppendUint64(b, r.size)
}

// reply is what a zygote says once a call and everything that it started has ended.
type reply struct {
	id   uint64
	wait unix.WaitStatus
	cpu  time.Duration
}

func decodeReply(b []byte) (reply, error) {
	if len(b) != replySize {
		return reply{}, fmt.Errorf("read reply: got %d bytes, want %d", len(b), replySize)
	}
	return reply{
		id:   binary.NativeEndian.Uint64(b),
		wait: unix.WaitStatus(binary.NativeEndian.Uint32(b[8:])),
		cpu:  time.Duration(binary.NativeEndian.Uint64(b[12:])) * time.Microsecond,
	}, nil
}

// newLink returns the parent's end and the zygote's.
func newLink() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make link: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "link"), os.NewFile(uintptr(pair[1]), "link")
	defer ours.Close() // FileConn duplicates it
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make link: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

// pipe returns a pipe whose read end the runtime polls and whose write end blocks, as
// programs expect of their standard output.
func pipe() (*os.File, int, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, fmt.Errorf("make pipe: %w", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return nil, -1, fmt.Errorf("make pipe: %w", err)
	}
	return os.NewFile(uintptr(ends[0]), "pipe"), ends[1], nil
}

// memoryFile returns a descriptor of an unnamed file in memory, its offset at 0.
func memoryFile(content string) (int, error) {
	fd, err := unix.MemfdCreate("call", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make file in memory: %w", err)
	}
	for done := 0; done < len(content); {
		n, err := unix.Pwrite(fd, []byte(content[done:min(len(content), done+1<<20)]), int64(done))
		if err != nil && err != syscall.EINTR {
			unix.Close(fd)
			return -1, fmt.Errorf("write file in memory: %w", err)
		}
		done += max(n, 0)
	}
	return fd, nil
}
