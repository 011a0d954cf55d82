package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// makeFolders makes the root folder and the folders in it accessible to this user only, because the objects, the logs
// and Temporal's database hold prompts, programs and results of runs. It restricts existing ones, with a notice.
func (l layout) makeFolders(say func(string)) error {
	if err := os.MkdirAll(filepath.Dir(l.root), 0o755); err != nil {
		return err
	}
	made := os.Mkdir(l.root, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	for _, folder := range []string{l.logs(), l.servers()} { // the folder of the objects is made with the S3 server
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	opened, err := l.tighten()
	if err == nil && len(opened) > 0 {
		say(fmt.Sprintf("note: other users could reach %s in %s; now only you can", strings.Join(opened, ", "), l.root))
	}
	return err
}

// tighten removes the permissions of group and others from the stack's files, and returns the names of those that had
// such permissions. A root that also holds other files, such as a home folder, stays as it is: its owner decides about
// it.
func (l layout) tighten() (opened []string, err error) {
	entries, err := os.ReadDir(l.root)
	if err != nil {
		return nil, fmt.Errorf("look for what other users can reach: %w", err)
	}
	var names []string
	for _, e := range entries {
		if isOurs(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if len(names) == len(entries) {
		names = append([]string{"."}, names...)
	}
	for _, name := range names {
		was, err := keepPrivate(filepath.Join(l.root, name))
		if err != nil {
			return nil, err
		}
		if was {
			opened = append(opened, name)
		}
	}
	return opened, nil
}

// isOurs reports whether a name in the state folder belongs to the stack or to another of our commands.
func isOurs(name string) bool {
	switch name {
	case "logs", "s3", "objectmeta", "s3.json", "servers", "held", "worker.ready", "cache", "bench", "python",
		"gpu-bundle", "gpu-bundle.tar.gz":
		return true
	}
	return strings.HasPrefix(name, "temporal.db") || strings.HasSuffix(name, ".new")
}

// keepPrivate removes the permissions of group and others from a file or folder and reports whether there were any. It
// does not change links.
func keepPrivate(path string) (was bool, err error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) { // it has disappeared since it was listed
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for what other users can reach: %w", err)
	}
	mode := fi.Mode()
	if mode.Perm()&0o077 == 0 || mode&(fs.ModeSymlink|fs.ModeSocket) != 0 {
		return false, nil
	}
	if err := os.Chmod(path, mode.Perm()&0o700); err != nil {
		return false,
			fmt.Errorf("keep the stack's state private: %w: own it, or set ROPEWALK_HOME to a folder of your own", err)
	}
	return true, nil
}
