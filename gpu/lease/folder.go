package lease

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// DirVariable names the folder that the host's processes share, if it is not DefaultDir. Processes in separate
// containers share the folder only if it is mounted into each of them.
const DirVariable = "ROPEWALK_GPU_LEASES"

// DefaultDir does not depend on TMPDIR or the user, because processes with different folders would use the same
// devices.
const DefaultDir = "/tmp/ropewalk-gpu"

// Dir returns the folder that this process's environment names.
func Dir() string {
	if dir := os.Getenv(DirVariable); dir != "" {
		return dir
	}
	return DefaultDir
}

// makeFolder creates the folder if it does not exist. Every user may create files in it, but may delete only their own.
func makeFolder(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the folder of leases: %w", err)
	}
	switch err := os.Mkdir(dir, 0o777); {
	case err == nil:
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil { // the umask took bits away
			return fmt.Errorf("open the folder of leases: %w", err)
		}
	case !errors.Is(err, fs.ErrExist):
		return fmt.Errorf("make the folder of leases: %w", err)
	}
	return checkFolder(dir)
}

// checkFolder rejects a path that is not a folder, including a link to a folder, because a link could lead anywhere.
func checkFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the folder of leases: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the folder of leases, %s, is not a folder; name another with %s", dir, DirVariable)
	}
	return nil
}

// Names of the files.
func lockPath(dir, uuid string) string { return filepath.Join(dir, url.PathEscape(uuid)+".lock") }
func markPath(dir, uuid string) string { return filepath.Join(dir, url.PathEscape(uuid)+".failed") }

// placementPath is the file that a process locks while it chooses devices. Otherwise two processes that each need
// several devices could each take half of them.
func placementPath(dir string) string { return filepath.Join(dir, "placement.lock") }
