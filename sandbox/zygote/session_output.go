package zygote

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// capture drains one stream of a session all its life, and gives each cell what it wrote. What arrives
// between cells, from threads and processes that a cell left running, counts to the next one.
type capture struct {
	file     *os.File
	fd       int // of file, which must not be closed while take may run
	raw      syscall.RawConn
	overflow func()

	mu    sync.Mutex
	bytes []byte
	limit int
	over  bool
}

// newCapture drains a pipe that the runtime polls; overflow is called at the first byte beyond limit.
func newCapture(file *os.File, limit int, overflow func()) (*capture, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("drain output: %w", err)
	}
	fd, err := descriptorOf(file)
	return &capture{file: file, fd: fd, raw: raw, limit: limit, overflow: overflow}, err
}

// drain reads until the pipe ends, is closed, or holds too much; between, it waits without cost.
func (c *capture) drain() {
	_ = c.raw.Read(func(uintptr) bool { // its error says that the file was closed
		c.mu.Lock()
		more := c.pull()
		c.mu.Unlock()
		return !more
	})
}

// pull reads what is in the pipe and reports whether more may come. It holds the lock, so that
// bytes keep their order whoever pulls.
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
			go c.overflow() // it may wait for who holds this lock
		}
	}
	return false
}

// begin sets the limit of the next cell.
func (c *capture) begin(limit int) {
	c.mu.Lock()
	c.limit = limit
	c.mu.Unlock()
}

// take returns what has been written since the last take, and so all that a cell wrote before its answer.
// If the pipe is known to be empty it is not asked again.
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
