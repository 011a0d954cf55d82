package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/ropewalk/ropewalk/internal/stack"
)

var update = flag.Bool("update", false,
	"write workflows/testdata (TestRecordHistories), docs/ui (TestRunsInTheBrowser) and docs/monitoring (TestAlerts) "+
		"again from real runs")

// binaryVariable names a built command. Without it the tests build one.
const binaryVariable = "ROPEWALK_E2E_BINARY"

// work is the folder of the whole test binary: the command and the shared home.
var work string

// steps is the number of steps in testdata/tiny.yaml.
const steps = 4

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // tests wait for most of their time
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU()))
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var err error
	if work, err = os.MkdirTemp("", "ropewalk-e2e-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(work)
	if !testing.Short() {
		if err := build(); err != nil {
			return 1, err
		}
	}
	code := m.Run()
	if shared.home != nil {
		shared.home.stop()
	}
	return code, nil
}

// tiny is the tests' recipe. Other runs are compared with its base run.
func tiny() string { return filepath.Join(root(), "test", "e2e", "testdata", "tiny.yaml") }

// binary is the command under test.
func binary() string {
	if made := os.Getenv(binaryVariable); made != "" {
		return made
	}
	return filepath.Join(work, "bin", "ropewalk")
}

// build makes the command once, as the Makefile does, unless it exists.
func build() error {
	if os.Getenv(binaryVariable) != "" {
		return nil
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", binary(), "./cmd/ropewalk")
	cmd.Dir = root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return nil
}

// root is the repository's root.
func root() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}

// needServers skips a test that cannot run, or fails it if ROPEWALK_REQUIRE_SERVERS is set. It returns the folders of
// the servers' programs.
func needServers(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real servers; run without -short")
	}
	var folders []string
	for _, name := range []string{"temporal", "versitygw"} {
		path, err := stack.FindTool(name)
		if err != nil {
			absent(t, err.Error())
		}
		folders = append(folders, filepath.Dir(path))
	}
	if _, err := exec.LookPath("python3"); err != nil {
		absent(t, "python3 is not on PATH; the sandbox forks it (Debian: apt-get install python3)")
	}
	return folders
}

func absent(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("ROPEWALK_REQUIRE_SERVERS") != "" {
		t.Fatalf("ROPEWALK_REQUIRE_SERVERS is set, and %s", what)
	}
	t.Skip(what)
}
