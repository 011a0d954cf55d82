package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/internal/cause"
)

// target is where a result is written: standard output, or a file that appears only when it is complete.
type target struct {
	io.Writer
	name string   // for messages
	file *os.File // the temporary file; nil for standard output and once it is kept
}

// target opens the file that -o names; if -o names a folder, a file of the given name in it. It writes to a temporary
// file in the same folder, so that a target that cannot be written is found before any work.
func (con *console) target(out, name string) (*target, error) {
	if out == "-" {
		return &target{Writer: con.data, name: "standard output"}, nil
	}
	info, err := os.Stat(out)
	switch {
	case err == nil && info.IsDir(), strings.HasSuffix(out, string(filepath.Separator)):
		out = filepath.Join(out, name)
	case err == nil && !info.Mode().IsRegular():
		return nil, badInput("-o %s: is neither a file nor a folder", out)
	}
	folder := filepath.Dir(out)
	file, err := os.CreateTemp(folder, "."+filepath.Base(out)+".*.part")
	if err != nil {
		return nil, badInput("-o %s: a file cannot be made in %s: %w", out, folder, why(folder, err))
	}
	return &target{Writer: file, name: out, file: file}, nil
}

// why is the cause of an error about a new file of a folder. File systems that hold no files of users, such as /proc,
// say that the folder does not exist.
func why(folder string, err error) error {
	if _, there := os.Stat(folder); there == nil && errors.Is(err, fs.ErrNotExist) {
		return errors.New("its file system takes no new files")
	}
	return cause.Of(err)
}

// keep gives the finished file its name.
func (t *target) keep() error {
	if t.file == nil {
		return nil
	}
	if err := t.file.Chmod(0o644); err != nil {
		return fmt.Errorf("write %s: %w", t.name, err)
	}
	if err := t.file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", t.name, err)
	}
	if err := os.Rename(t.file.Name(), t.name); err != nil {
		return fmt.Errorf("write %s: %w", t.name, cause.Of(err))
	}
	t.file = nil
	return nil
}

// discard removes what was written, unless it was kept.
func (t *target) discard() {
	if t.file != nil {
		t.file.Close()
		os.Remove(t.file.Name())
	}
}
