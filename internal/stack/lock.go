package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// How a file can be locked. Several can share a lock, and one can own it.
const (
	unlocked int16 = unix.F_UNLCK
	shared   int16 = unix.F_RDLCK
	owned    int16 = unix.F_WRLCK
)

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked by another process")

// lock is an open lock file. The kernel ties its lock to this open file, so that the lock ends with its process, and it
// tells how others hold the lock.
type lock struct{ file *os.File }

func openLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	return &lock{f}, nil
}

// request asks the kernel about the whole file. It returns how others hold the lock if that is the command's question.
func (l *lock) request(command int, how int16) (int16, error) {
	for {
		r := unix.Flock_t{Type: how}
		err := unix.FcntlFlock(l.file.Fd(), command, &r)
		switch {
		case err == nil:
			return r.Type, nil
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
			return 0, errLocked
		case !errors.Is(err, unix.EINTR):
			return 0, fmt.Errorf("lock %s: %w", l.file.Name(), err)
		}
	}
}

// take takes the lock, or changes how it is held, or returns errLocked immediately.
func (l *lock) take(how int16) error {
	_, err := l.request(unix.F_OFD_SETLK, how)
	return err
}

// wait takes the lock as soon as it can be taken.
func (l *lock) wait(how int16) error {
	_, err := l.request(unix.F_OFD_SETLKW, how)
	return err
}

// others returns how others hold the lock.
func (l *lock) others() (int16, error) { return l.request(unix.F_OFD_GETLK, owned) }

func (l *lock) close() error { return l.file.Close() }

// takeLock opens a lock file and takes its lock as soon as it can be taken.
func takeLock(ctx context.Context, path string, how int16) (*lock, error) {
	l, err := openLock(path)
	if err != nil {
		return nil, err
	}
	for {
		if err = l.take(how); err == nil {
			return l, nil
		}
		if !errors.Is(err, errLocked) || !sleep(ctx, 20*time.Millisecond) {
			return nil, errors.Join(fmt.Errorf("wait for %s: %w", path, errors.Join(err, ctx.Err())), l.close())
		}
	}
}

// lockedAs returns how a file is locked. It makes no file.
func lockedAs(path string) (int16, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return unlocked, nil
	}
	if err != nil {
		return unlocked, fmt.Errorf("open lock: %w", err)
	}
	defer f.Close()
	return (&lock{f}).others()
}

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
