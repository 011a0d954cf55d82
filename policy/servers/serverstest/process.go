package serverstest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/transcript"
)

// find finds a program at the path that a variable names, or in .tools. Without one the test is skipped, or fails if
// the variable require is set. script makes the program.
func find(t testing.TB, variable, require, name, script string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join(root(t), ".tools", name)
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

// Process is a running server.
type Process struct {
	URL   string
	cmd   *exec.Cmd
	log   transcript.Transcript
	ended chan struct{}
}

// startLimit is how long a server may take until it answers, on a machine that is busy with other tests.
const startLimit = 15 * time.Minute

// start is launch, and waits until the server answers.
func start(t testing.TB, program string, variables []string, args ...string) *Process {
	t.Helper()
	p := launch(t, program, variables, args...)
	p.Wait(t)
	return p
}

// launch starts a program that serves at --host and --port, on loopback. The server and what it has started end with
// the test.
func launch(t testing.TB, program string, variables []string, args ...string) *Process {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	p := &Process{URL: fmt.Sprintf("http://127.0.0.1:%d", port), ended: make(chan struct{})}
	p.cmd = exec.Command(program, append(args, "--host", "127.0.0.1", "--port", strconv.Itoa(port))...)
	p.cmd.Env = append(os.Environ(), variables...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			text := p.log.String()
			t.Logf("%s: …%s", filepath.Base(program), text[max(0, len(text)-6000):])
		}
	})
	go func() {
		_ = p.cmd.Wait() // Kill ends it
		close(p.ended)
	}()
	return p
}

// Wait waits until the server answers.
func (p *Process) Wait(t testing.TB) {
	t.Helper()
	for until := time.Now().Add(startLimit); ; {
		resp, err := http.Get(p.URL + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		require.True(t, time.Now().Before(until), "%s does not start: %v\n%s", p.cmd.Path, err, p.log.String())
		select {
		case <-p.ended:
			t.Fatalf("%s has ended:\n%s", p.cmd.Path, p.log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the server and its children at once.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	<-p.ended
}

// root is the folder of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		require.NotEqual(t, "/", dir, "no go.mod above the test")
		dir = filepath.Dir(dir)
	}
}
