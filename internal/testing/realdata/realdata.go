// Package realdata finds third-party data files that tests use and that are not part of the project.
package realdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/servertest"
)

// Path returns the path of data/PARTS below the folder that ROPEWALK_SHARED names, or else below the folder "shared"
// next to the repository. The test is skipped if the file does not exist.
func Path(t *testing.T, parts ...string) string {
	t.Helper()
	folder := os.Getenv("ROPEWALK_SHARED")
	if folder == "" {
		folder = servertest.Path(t, "..", "shared")
	}
	name := filepath.Join(append([]string{"data"}, parts...)...)
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		t.Skipf("%s does not exist; set ROPEWALK_SHARED to the folder that holds it", name)
	} else if err != nil {
		t.Fatal(err)
	}
	return path
}
