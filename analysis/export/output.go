package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// ErrTaken means that the path to write to cannot be used.
var ErrTaken = errors.New("cannot be written")

// output is a path at which a file or folder appears when it is complete.
type output struct {
	path   string
	folder bool // the result is a folder
	there  bool // something is there, and is replaced
}

// newOutput checks the path before any work. A file or a model's folder that is there is only replaced with force; an
// empty folder is always used.
func newOutput(path string, folder, force bool) (output, error) {
	p := output{path: filepath.Clean(path), folder: folder}
	refuse := func(format string, args ...any) (output, error) {
		return p, fmt.Errorf("%s: %w: %s", path, ErrTaken, fmt.Sprintf(format, args...))
	}
	if above, err := os.Stat(filepath.Dir(p.path)); err != nil || !above.IsDir() {
		return refuse("%s is not a folder", filepath.Dir(p.path))
	}
	info, err := os.Lstat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err != nil:
		return p, err
	case folder != info.IsDir():
		return refuse("it is there and is %s", map[bool]string{true: "a folder", false: "no folder"}[info.IsDir()])
	case !folder && !info.Mode().IsRegular():
		return refuse("it is there and is no file")
	}
	p.there = true
	if !folder && !force {
		return refuse("it exists; --force replaces it")
	}
	if !folder {
		return p, nil
	}
	held, err := os.ReadDir(p.path)
	if err != nil {
		return p, err
	}
	if len(held) == 0 {
		return p, nil
	}
	if _, err := os.Stat(filepath.Join(p.path, checkpoint.FileConfig)); err != nil {
		return refuse("it is a folder with files and without %s, so not a model's", checkpoint.FileConfig)
	}
	if !force {
		return refuse("it exists; --force replaces it")
	}
	return p, nil
}

// write calls produce with an empty folder next to the path, and puts its result at the path. After an error the
// path is as it was.
func (p output) write(produce func(part string) (whole string, err error)) (err error) {
	part, err := os.MkdirTemp(filepath.Dir(p.path), "."+filepath.Base(p.path)+".*.part")
	if err != nil {
		return fmt.Errorf("%s: %w: %w", p.path, ErrTaken, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	whole, err := produce(part)
	if err != nil {
		return err
	}
	if err := readable(whole); err != nil {
		return err
	}
	old := filepath.Join(part, "old")
	if p.there && p.folder {
		if err := os.Rename(p.path, old); err != nil {
			return fmt.Errorf("move away %s: %w", p.path, cause.Of(err))
		}
	}
	if err := os.Rename(whole, p.path); err != nil {
		why := cause.Of(err)
		if p.there && p.folder {
			why = errors.Join(why, os.Rename(old, p.path))
		}
		return fmt.Errorf("write %s: %w", p.path, why)
	}
	return nil
}

// readable gives a result the usual modes.
func readable(path string) error {
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(name, 0o755)
		}
		return os.Chmod(name, 0o644)
	})
}
