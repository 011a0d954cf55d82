// Package servertest runs servers of other programs in tests.
package servertest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/launch"
	"github.com/ropewalk/ropewalk/internal/testing/transcript"
)

// Find finds a program at the path that a variable names, or in .tools. Without one the test is skipped, or fails if
// the variable require is set. script makes the program.
func Find(t testing.TB, variable, require, name, script string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		path = Path(t, ".tools", name)
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv(require) != "" {
		t.Fatalf("%s is set, and there is no %s; run %s", require, path, script)
	}
	t.Skipf("there is no %s (%s makes it)", path, script)
	return ""
}

// Path is a path below the folder of the module.
func Path(t testing.TB, below ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(append([]string{dir}, below...)...)
		}
		require.NotEqual(t, "/", dir, "no go.mod above the test")
		dir = filepath.Dir(dir)
	}
}

// Process is a running server.
type Process struct {
	*launch.Server
	ready string
	log   transcript.Transcript
}

// Launch starts a server on loopback that answers at the path ready once it can be used. command returns its command
// line. The server and what it has started end with the test.
func Launch(t testing.TB, name, ready string, variables []string, command func(port string) []string) *Process {
	t.Helper()
	p := &Process{ready: ready}
	var err error
	p.Server, err = launch.Start(name, variables, &p.log, command)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			text := p.log.String()
			t.Logf("%s: …%s", name, text[max(0, len(text)-6000):])
		}
	})
	return p
}

// Wait waits until the server answers.
func (p *Process) Wait(t testing.TB) {
	t.Helper()
	require.NoError(t, p.Await(t.Context(), p.ready), "%s", &p.log)
}
