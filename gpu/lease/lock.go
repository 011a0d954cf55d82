package lease

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// errHeld says that another holder has the lock.
var errHeld = errors.New("held by another")

// tryLock locks a file, which it creates if needed, or returns errHeld at once. The lock belongs to the open file:
// closing the file releases the lock, and so does the end of the process. Go opens files so that child processes do not
// inherit them. The file is empty and is never written to.
func tryLock(path string) (*os.File, error) {
	for {
		f, err := openLock(path)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, errHeld
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if stillThere(f, path) {
			return f, nil
		}
		f.Close() // the file was deleted meanwhile, so another process would lock a new one
	}
}

// openLock opens the file only for reading, which is enough for a lock. The file may belong to another user.
func openLock(path string) (*os.File, error) {
	const safe = unix.O_NOFOLLOW | unix.O_NONBLOCK // neither a link to elsewhere nor a pipe that blocks
	for {
		f, err := os.OpenFile(path, os.O_RDONLY|safe, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL|safe, 0o644)
		switch {
		case err == nil:
			return f, f.Chmod(0o644) // the umask may have kept other users out
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		}
	}
}

func stillThere(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, now)
}

// lockRetry is the pause between two attempts to take a lock that another process holds.
const lockRetry = 10 * time.Millisecond

// waitLock waits for a lock that is only ever held for moments.
func waitLock(ctx context.Context, clock device.Clock, path string) (*os.File, error) {
	for {
		f, err := tryLock(path)
		if !errors.Is(err, errHeld) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-clock.After(lockRetry):
		}
	}
}

// holder returns the process that has locked a file, from the kernel's list, or 0 if the process is not visible, e.g.
// from a container.
func holder(path string) int {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0
	}
	list, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer list.Close()
	return holderIn(list, fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino))
}

// holderIn looks a file up, by its device and inode, in the kernel's list of locks, which has lines like
//
//	1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF
//
// and below each lock those who wait for it, with an arrow in the second column.
func holderIn(list io.Reader, file string) int {
	for lines := bufio.NewScanner(list); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) >= 6 && f[1] == "FLOCK" && f[5] == file {
			pid, _ := strconv.Atoi(f[4])
			return max(pid, 0) // -1: a process of another namespace
		}
	}
	return 0
}
