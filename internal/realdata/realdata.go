// Package realdata finds data files of others that tests want and that do not come with the project.
package realdata

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Path returns the path of data/PARTS below the folder that ROPEWALK_SHARED names, or else below the
// folder shared beside the repository. The test is skipped where the file is not there.
func Path(t *testing.T, parts ...string) string {
	t.Helper()
	folder := os.Getenv("ROPEWALK_SHARED")
	if folder == "" {
		_, here, _, _ := runtime.Caller(0)
		folder = filepath.Join(filepath.Dir(here), "..", "..", "..", "shared")
	}
	name := filepath.Join(append([]string{"data"}, parts...)...)
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		t.Skipf("%s is not there; set ROPEWALK_SHARED to the folder that holds it", name)
	} else if err != nil {
		t.Fatal(err)
	}
	return path
}
