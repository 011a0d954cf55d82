package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked by another process")

// fileLock is an exclusive lock that the kernel releases when its holder dies.
type fileLock struct{ f *os.File }

// tryLock takes the lock, or returns errLocked immediately.
func tryLock(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &fileLock{f}, nil
}

// waitLock takes the lock as soon as it is free.
func waitLock(ctx context.Context, path string) (*fileLock, error) {
	for {
		l, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return l, err
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return nil, fmt.Errorf("wait for %s: %w", path, errors.Join(err, ctx.Err()))
		}
	}
}

func (l *fileLock) release() { l.f.Close() }

// sleep waits for d. It returns false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
