package zygote

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// wakeup wakes a goroutine that polls descriptors.
type wakeup struct {
	mu sync.Mutex
	fd int // an eventfd; −1 once closed
}

func newWakeup() (*wakeup, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make eventfd: %w", err)
	}
	return &wakeup{fd: fd}, nil
}

// signal makes the descriptor readable. A failure is harmless: the goroutine also wakes up at intervals.
func (w *wakeup) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd >= 0 {
		_, _ = unix.Write(w.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// clear makes the descriptor unreadable again.
func (w *wakeup) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var count [8]byte
	_, _ = unix.Read(w.fd, count[:])
}

func (w *wakeup) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fd = closed(w.fd)
}
