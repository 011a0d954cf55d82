package zygote

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// nudge wakes a goroutine that waits for descriptors.
type nudge struct {
	mu sync.Mutex
	fd int // an eventfd; −1 once closed
}

func newNudge() (*nudge, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make eventfd: %w", err)
	}
	return &nudge{fd: fd}, nil
}

// give makes the descriptor readable. What fails is made up for: the goroutine wakes now and then of itself.
func (n *nudge) give() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fd >= 0 {
		_, _ = unix.Write(n.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// take makes it unreadable again.
func (n *nudge) take() {
	n.mu.Lock()
	defer n.mu.Unlock()
	var count [8]byte
	_, _ = unix.Read(n.fd, count[:])
}

func (n *nudge) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fd = closed(n.fd)
}
