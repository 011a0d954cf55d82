package zygote

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// capture drains one output stream of a session for the whole life of the session, and gives each cell its own output.
// Output that arrives between cells, from threads and processes that a cell left running, belongs to the next cell.
type capture struct {
	file     *os.File
	fd       int // of file; file must not be closed while take may run
	raw      syscall.RawConn
	overflow func()

	mu    sync.Mutex
	bytes []byte
	limit int
	over  bool
}

// newCapture prepares to drain a pipe that the runtime polls. overflow is called at the first byte beyond limit.
func newCapture(file *os.File, limit int, overflow func()) (*capture, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("drain output: %w", err)
	}
	fd, err := descriptorOf(file)
	return &capture{file: file, fd: fd, raw: raw, limit: limit, overflow: overflow}, err
}

// drain reads until the pipe ends, is closed, or has held too much. Between reads it waits at no cost.
func (c *capture) drain() {
	_ = c.raw.Read(func(uintptr) bool { // fails once the file is closed
		c.mu.Lock()
		more := c.pull()
		c.mu.Unlock()
		return !more
	})
}

// pull reads what the pipe holds and reports whether more can come. Its caller holds the lock, so that bytes keep their
// order whichever goroutine pulls.
func (c *capture) pull() bool {
	for !c.over {
		c.bytes = slices.Grow(c.bytes, 4096)
		n, err := unix.Read(c.fd, c.bytes[len(c.bytes):cap(c.bytes)])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return true
		case err != nil || n == 0:
			return false
		}
		c.bytes = c.bytes[:len(c.bytes)+n]
		if len(c.bytes) > c.limit {
			c.bytes, c.over = c.bytes[:c.limit], true
			go c.overflow() // in a goroutine: it may wait for a lock whose holder waits for this one
		}
	}
	return false
}

// begin sets the limit for the next cell.
func (c *capture) begin(limit int) {
	c.mu.Lock()
	c.limit = limit
	c.mu.Unlock()
}

// take returns what has been written since the last take, which includes all that a cell wrote before its answer. If
// the pipe is known to be empty, take does not read it again.
func (c *capture) take(empty bool) stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !empty {
		c.pull()
	}
	s := stream{overflow: c.over}
	if len(c.bytes) > 0 {
		s.bytes = slices.Clone(c.bytes)
		c.bytes = c.bytes[:0]
	}
	return s
}
