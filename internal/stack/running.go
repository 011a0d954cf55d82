package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNotRunning says that no local stack is running in the root folder.
var ErrNotRunning = errors.New("no local stack runs")

// Running returns the addresses of the local stack that is running in the root folder. It starts nothing and keeps
// nothing running. While a stack is starting, addresses may be missing.
func Running(opts Options) (Addresses, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return Addresses{}, err
	}
	l := layout{opts.Root}
	s, err := l.readState()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !l.supervised() {
		return Addresses{}, fmt.Errorf("%w in %s", ErrNotRunning, l.root)
	}
	if err != nil {
		return Addresses{}, fmt.Errorf("read what runs in %s: %w", l.root, err)
	}
	if s.Addresses.S3Folder != "" { // the state holds no secrets
		keys, err := l.loadCredentials()
		if err != nil {
			return Addresses{}, err
		}
		s.Addresses.AccessKey, s.Addresses.SecretKey = keys.AccessKey, keys.SecretKey
	}
	return s.Addresses, nil
}

// IsLocal reports whether the Temporal server that a worker connects to is that of a local stack: one whose addresses
// are in its environment, or the one in the root folder.
func IsLocal(hostPort string) bool {
	if os.Getenv(uiVariable) != "" {
		return true
	}
	a, err := Running(Options{})
	return err == nil && a.UI != "" && a.Temporal == hostPort
}

// supervised reports whether a supervisor is running. One that was killed leaves its state behind. Asking makes no
// file.
func (l layout) supervised() bool {
	if _, err := os.Stat(l.aliveLock()); err != nil {
		return false
	}
	lock, err := tryLock(l.aliveLock())
	if err == nil {
		lock.release()
	}
	return errors.Is(err, errLocked)
}
