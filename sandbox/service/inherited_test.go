package service

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A service that gets its socket from systemd answers from a network namespace in which it reaches no one.
func TestServeOnAnInheritedSocket(t *testing.T) {
	if elsewhere := os.Getenv("ROPEWALK_TEST_ELSEWHERE"); elsewhere != "" {
		serveInherited(t, elsewhere)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a process a network namespace")
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	file, err := socket.(*net.TCPListener).File()
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", `LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"`, "sh", os.Args[0], "-test.run",
		"^TestServeOnAnInheritedSocket$", "-test.v")
	cmd.Env = append(os.Environ(), "ROPEWALK_TEST_ELSEWHERE="+other.Addr().String())
	cmd.ExtraFiles = []*os.File{file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	require.NoError(t, file.Close())
	require.NoError(t, socket.Close())
	answer, err := http.Post("http://"+socket.Addr().String()+"/v1/run", "application/json",
		strings.NewReader(`{"code":"ok"}`))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "%s", &said)
	require.Equal(t, 200, answer.StatusCode)
}

// serveInherited is the process of the service, until it gets SIGTERM.
func serveInherited(t *testing.T, elsewhere string) {
	t.Helper()
	_, err := net.Dial("tcp", elsewhere)
	require.Error(t, err, "another process of this machine can be reached")
	listener, err := Inherited()
	require.NoError(t, err)
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	require.NoError(t, newService(t, Options{Executor: &fake{}}).Serve(ctx, listener, nil, time.Second))
}

func TestNoSocketIsInherited(t *testing.T) {
	t.Setenv("LISTEN_FDS", "1")
	t.Setenv("LISTEN_PID", "1") // meant for another process
	_, err := Inherited()
	require.ErrorContains(t, err, "systemd has passed no socket")
}
