package zygote

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
)

// emptyFolder creates an empty work folder for a slot, owned by the user that calls run as. Only the tiers without
// mounts need it. Open creates the first one before anything runs concurrently. The folder's name cannot be guessed, so
// calls in other slots, which run as the same user, cannot open it.
func (e *Executor) emptyFolder(name string) (string, error) {
	if err := e.makeScratch(); err != nil {
		return "", err
	}
	prefix := filepath.Join(e.scratch, name) + "-"
	earlier, err := filepath.Glob(prefix + "*")
	if err != nil {
		return "", fmt.Errorf("find earlier work folder: %w", err)
	}
	for _, folder := range earlier {
		if err := os.RemoveAll(folder); err != nil {
			return "", fmt.Errorf("empty work folder: %w", err)
		}
	}
	folder := prefix + rand.Text()
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", fmt.Errorf("make work folder: %w", err)
	}
	if os.Geteuid() != 0 {
		return folder, nil
	}
	if err := os.Chown(folder, unprivileged, unprivileged); err != nil {
		return "", fmt.Errorf("give away work folder: %w", err)
	}
	return folder, nil
}

// makeScratch creates the folder that holds the work folders.
func (e *Executor) makeScratch() error {
	if e.scratch != "" {
		return nil
	}
	scratch, err := os.MkdirTemp(e.dir, "ropewalk-sandbox-")
	if err != nil {
		return fmt.Errorf("make scratch folder: %w", err)
	}
	e.scratch = scratch
	// Calls enter their own folder below this one, perhaps as another user, but cannot list it.
	if err := os.Chmod(scratch, 0o711); err != nil {
		return fmt.Errorf("open scratch folder to calls: %w", err)
	}
	return nil
}

func (e *Executor) removeScratch() error {
	if e.scratch == "" {
		return nil
	}
	if err := os.RemoveAll(e.scratch); err != nil {
		return fmt.Errorf("remove scratch folder: %w", err)
	}
	return nil
}
