package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// heldSuffix is the suffix of the names of notes.
const heldSuffix = ".held"

// Held is a command's note that it follows a run on the local stack: a file with a shared lock. If the command is
// killed, the kernel releases the lock, and the file that remains tells later commands that the run was left behind.
type Held struct {
	path string
	file *os.File
}

// Hold writes the note that this process follows a run. Several processes may hold the same run.
func Hold(run string) (*Held, error) {
	folder, err := heldFolder()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("note that run %s is followed: %w", run, err)
	}
	path := filepath.Join(folder, run+heldSuffix)
	for {
		f, err := lockNote(path, unix.LOCK_SH)
		if err != nil {
			return nil, fmt.Errorf("note that run %s is followed: %w", run, err)
		}
		if f != nil {
			return &Held{path, f}, nil
		}
	}
}

// lockNote opens and locks a note. It returns nil if another process removed the note in between.
func lockNote(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	opened, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if there, err := os.Stat(path); err == nil && os.SameFile(opened, there) {
		return f, nil
	}
	return nil, f.Close()
}

// Release ends the hold and removes the note, unless another process holds the run as well.
func (h *Held) Release() error {
	defer h.file.Close()
	err := unix.Flock(int(h.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release %s: %w", h.path, err)
	}
	return remove(h.path)
}

// Leave ends the hold and keeps the note: the run continues without this process.
func (h *Held) Leave() error { return h.file.Close() }

// LeftBehind returns the runs whose notes no process holds, sorted by name.
func LeftBehind() ([]string, error) {
	folder, err := heldFolder()
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the runs that commands follow: %w", err)
	}
	var left []string
	for _, f := range files {
		run, ok := strings.CutSuffix(f.Name(), heldSuffix)
		if !ok {
			continue
		}
		free, err := unheld(filepath.Join(folder, f.Name()))
		if err != nil {
			return nil, err
		}
		if free {
			left = append(left, run)
		}
	}
	return left, nil
}

// unheld reports whether a note exists that no process holds.
func unheld(path string) (bool, error) {
	f, err := takeNote(path)
	if err != nil || f == nil {
		return false, err
	}
	return true, f.Close()
}

// takeNote locks a note exclusively. It returns nil if there is no note or another process holds it.
func takeNote(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check whether a command follows a run: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("check whether a command follows a run: lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// Forget removes the note of a run that was left behind. If a process holds the run again, the note stays.
func Forget(run string) error {
	folder, err := heldFolder()
	if err != nil {
		return err
	}
	path := filepath.Join(folder, run+heldSuffix)
	f, err := takeNote(path)
	if err != nil || f == nil {
		return err
	}
	return errors.Join(remove(path), f.Close())
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the note of a run: %w", err)
	}
	return nil
}

func heldFolder() (string, error) {
	o, err := Options{}.withDefaults()
	if err != nil {
		return "", err
	}
	return layout{o.Root}.held(), nil
}

// WorkerRuns reports whether the local stack is running and has a worker.
func WorkerRuns() (bool, error) {
	o, err := Options{}.withDefaults()
	if err != nil {
		return false, err
	}
	l := layout{o.Root}
	if !l.supervised() {
		return false, nil
	}
	s, err := l.readState()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return s.Parts[partWorker] > 0, err
}
