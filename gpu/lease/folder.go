package lease

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// DirVariable names the folder that the host's processes share, where it is not DefaultDir. Processes in containers of
// their own share it only if it is mounted into them.
const DirVariable = "ROPEWALK_GPU_LEASES"

// DefaultDir does not follow TMPDIR or the user: processes that look into different folders would share devices.
const DefaultDir = "/tmp/ropewalk-gpu"

// Dir is the folder that this process's environment names.
func Dir() string {
	if dir := os.Getenv(DirVariable); dir != "" {
		return dir
	}
	return DefaultDir
}

// makeFolder makes the folder if it is not there: open to every user, each of whom can delete only their own files.
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

// checkFolder refuses what is not a folder, links to one included: they could lead anywhere.
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

// placementPath is locked by whoever is choosing, so that two that want several devices do not take half of them each.
func placementPath(dir string) string { return filepath.Join(dir, "placement.lock") }
