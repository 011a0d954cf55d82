package tinkertest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/transcript"
)

// Python finds the Python that has SkyRL: ROPEWALK_TINKER_PYTHON, or the one that tools/worlds.sh makes. Without one
// the test is skipped, or fails if ROPEWALK_REQUIRE_TINKER is set.
func Python(t testing.TB) string {
	t.Helper()
	path := os.Getenv("ROPEWALK_TINKER_PYTHON")
	if path == "" {
		path = filepath.Join(folder(t), "..", "..", "..", ".tools", "worlds", "tinker", "bin", "python")
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("ROPEWALK_REQUIRE_TINKER") != "" {
		t.Fatalf("ROPEWALK_REQUIRE_TINKER is set, and there is no %s; run tools/worlds.sh tinker", path)
	}
	t.Skipf("there is no %s (tools/worlds.sh tinker makes it)", path)
	return ""
}

// folder is that of this file.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		at := filepath.Join(dir, "policy", "tinker", "tinkertest")
		if _, err := os.Stat(at); err == nil {
			return at
		}
		require.NotEqual(t, "/", dir, "no policy/tinker/tinkertest above the test")
		dir = filepath.Dir(dir)
	}
}

// Real is a running server of SkyRL.
type Real struct {
	URL   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts SkyRL's server on loopback with the base model in a folder, whose path is the model's name. The server
// and its engine end with the test.
func Start(t testing.TB, model string) *Real {
	t.Helper()
	python := Python(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	p := &Real{URL: fmt.Sprintf("http://127.0.0.1:%d", port)}
	p.cmd = exec.Command(python, filepath.Join(folder(t), "testdata", "serve.py"), fmt.Sprint(port), model, t.TempDir())
	p.cmd.Env = append(os.Environ(), "JAX_PLATFORMS=cpu", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1",
		fmt.Sprintf("OMP_NUM_THREADS=%d", max(1, runtime.GOMAXPROCS(0))))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log transcript.Transcript
	p.cmd.Stdout, p.cmd.Stderr = &log, &log
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.ended = make(chan struct{})
	go func() {
		_ = p.cmd.Wait() // how it ends does not matter: it is killed
		close(p.ended)
	}()
	t.Cleanup(func() {
		stdin.Close()
		p.Kill()
		if t.Failed() {
			text := log.String()
			t.Logf("skyrl: …%s", text[max(0, len(text)-6000):])
		}
	})
	until := time.Now().Add(3 * time.Minute)
	for {
		resp, err := http.Get(p.URL + "/api/v1/healthz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return p
			}
		}
		select {
		case <-p.ended:
			until = time.Time{}
		case <-time.After(100 * time.Millisecond):
		}
		if !time.Now().Before(until) {
			t.Fatalf("SkyRL's server does not start: %v\n%s", err, log.String())
		}
	}
}

// Kill ends the server and its engine at once.
func (p *Real) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	<-p.ended
}
