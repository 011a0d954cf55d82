package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// heldSuffix is the suffix of the names of notes.
const heldSuffix = ".held"

// Held is a command's note that it follows a run on the local stack: a file with a shared lock. If the command is
// killed, the kernel releases the lock, and the file that remains tells later commands that the run was left behind.
type Held struct{ note *lock }

// Hold writes the note that this process follows a run. Several processes may hold the same run.
func Hold(run string) (*Held, error) {
	folder, err := heldFolder()
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	for err == nil {
		var note *lock
		if note, err = openLock(filepath.Join(folder, run+heldSuffix)); err != nil {
			break
		}
		if err = note.wait(shared); err == nil && note.inPlace() {
			return &Held{note}, nil
		}
		err = errors.Join(err, note.close())
	}
	return nil, fmt.Errorf("note that run %s is followed: %w", run, err)
}

// inPlace reports whether the file still has its name: another process may have removed it before it was locked.
func (l *lock) inPlace() bool {
	opened, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(l.file.Name())
	return err == nil && os.SameFile(opened, there)
}

// Release ends the hold and removes the note, unless another process holds the run as well.
func (h *Held) Release() error { return errors.Join(h.note.discard(), h.note.close()) }

// Leave ends the hold and keeps the note: the run continues without this process.
func (h *Held) Leave() error { return h.note.close() }

// discard removes the file, unless another process has locked it.
func (l *lock) discard() error {
	err := l.take(owned)
	if errors.Is(err, errLocked) {
		return nil
	}
	if err == nil {
		err = os.Remove(l.file.Name())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the note of a run: %w", err)
	}
	return nil
}

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
		path := filepath.Join(folder, f.Name())
		how, err := lockedAs(path)
		if err != nil {
			return nil, fmt.Errorf("check whether a command follows run %s: %w", run, err)
		}
		if _, err := os.Stat(path); err == nil && how == unlocked { // a command that ends removes its note
			left = append(left, run)
		}
	}
	return left, nil
}

// Forget removes the note of a run that was left behind. If a process holds the run again, the note stays.
func Forget(run string) error {
	folder, err := heldFolder()
	if err != nil {
		return err
	}
	path := filepath.Join(folder, run+heldSuffix)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	note, err := openLock(path)
	if err != nil {
		return fmt.Errorf("forget run %s: %w", run, err)
	}
	return errors.Join(note.discard(), note.close())
}

func heldFolder() (string, error) {
	o, err := Options{}.withDefaults()
	if err != nil {
		return "", err
	}
	return layout{o.Root}.followed(), nil
}
