package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// errNoTool says that a server's program is not installed; the message says what to do.
var errNoTool = errors.New("program not found")

// FindTool returns the path of a program: from PATH, else from a .tools folder of the working folder or one above it,
// else from one next to the executable or in the folder above that. A program in .tools that another user could replace
// is refused, because a folder above the working folder may belong to anyone.
func FindTool(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return filepath.Abs(p)
	}
	p, err := InTools(name)
	if p == "" && err == nil {
		err = fmt.Errorf("%w: %s is neither on PATH nor in .tools: %s", errNoTool, name, toolAdvice(name))
	}
	return p, err
}

// InTools returns the path of a program in the .tools folders that FindTool searches; "" if none has it.
func InTools(name string) (string, error) {
	var dirs []string
	if wd, err := os.Getwd(); err == nil {
		for d := wd; ; d = filepath.Dir(d) {
			dirs = append(dirs, d)
			if d == filepath.Dir(d) {
				break
			}
		}
	}
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self), filepath.Dir(filepath.Dir(self)))
	}
	for _, d := range dirs {
		p := filepath.Join(d, ".tools", name)
		if fi, err := os.Stat(p); err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0 {
			continue
		}
		if err := replaceable(p); err != nil {
			return "", fmt.Errorf("use the program %s: %w: take the rights of others away, or put %s on PATH", p, err,
				name)
		}
		return p, nil
	}
	return "", nil
}

func toolAdvice(name string) string {
	if _, err := exec.LookPath("go"); err != nil {
		return "install " + name + ", or install Go and run `make tools` in the source tree"
	}
	return "run `make tools` in the source tree (builds it once, some minutes), or install " + name
}

// maxLinks bounds how many symbolic links a path may go through, as the kernel does.
const maxLinks = 40

// replaceable returns an error if a user other than this one and root could replace this file: if the file, a folder on
// its path or a link on its path belongs to another user, or is writable by others. In a sticky folder, such as /tmp,
// others can add files but not replace them.
func replaceable(path string) error { return replaceableThrough(path, maxLinks) }

func replaceableThrough(path string, links int) error {
	if dir := filepath.Dir(path); dir != path {
		if err := replaceableThrough(dir, links); err != nil {
			return err
		}
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at who owns it: %w", err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s has no owner", path)
	}
	if int(st.Uid) != os.Getuid() && st.Uid != 0 {
		return fmt.Errorf("%s belongs to another user (id %d)", path, st.Uid)
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		if links == 0 {
			return fmt.Errorf("%s goes through too many links", path)
		}
		target, err := os.Readlink(path)
		if err != nil {
			return fmt.Errorf("look at who owns it: %w", err)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		return replaceableThrough(target, links-1)
	}
	if by := writers(fi.Mode(), st); by != "" {
		return fmt.Errorf("%s is writable by %s", path, by)
	}
	return nil
}

// writers says who else can write, or "" if no one can. A group with the id of the owner is that user's own group:
// systems that make a group for each user make folders writable by it.
func writers(mode fs.FileMode, st *syscall.Stat_t) string {
	switch {
	case mode.IsDir() && mode&fs.ModeSticky != 0:
		return ""
	case mode.Perm()&0o002 != 0:
		return "every user"
	case mode.Perm()&0o020 != 0 && st.Gid != st.Uid:
		return fmt.Sprintf("group %d", st.Gid)
	}
	return ""
}
