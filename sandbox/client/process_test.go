package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
	"github.com/ropewalk/ropewalk/sandbox/service"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// serveVariable makes the test binary run a service at the address that it contains.
const serveVariable = "ROPEWALK_TEST_SANDBOX_SERVICE"

func TestMain(m *testing.M) {
	if address := os.Getenv(serveVariable); address != "" {
		if err := serveProcess(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveProcess runs real calls until it is told to end.
func serveProcess(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	executor, err := zygote.Open(zygote.Options{Workers: 2})
	if err != nil {
		return err
	}
	defer executor.Close()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s := service.New(service.Options{Executor: executor})
	defer s.Close()
	fmt.Println(listener.Addr())
	return s.Serve(ctx, listener, nil, hangs)
}

// process is a service in its own process.
type process struct {
	cmd     *exec.Cmd
	address string
}

func start(t *testing.T, address string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"="+address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the service does not start")
	return &process{cmd, strings.TrimSpace(line)}
}

// background runs calls and returns a function that waits for their verdicts.
func background(t *testing.T, c *client.Client, calls []sandbox.Call) (wait func() []sandbox.Result) {
	t.Helper()
	var results []sandbox.Result
	done := make(chan error, 1)
	go func() {
		var err error
		results, err = c.Run(t.Context(), calls)
		done <- err
	}()
	return func() []sandbox.Result {
		t.Helper()
		require.NoError(t, <-done)
		require.Len(t, results, len(calls))
		return results
	}
}

// Services in processes of their own: one is killed under load and served again at its address, and the other one is
// terminated. Every call gets its verdict.
func TestProcesses(t *testing.T) {
	zygotetest.Need(t)
	killed, leaving := start(t, "127.0.0.1:0"), start(t, "127.0.0.1:0")
	c := open(t, client.Options{Addresses: []string{killed.address, leaving.address}})
	until(t, func() bool { return c.Nodes() == 2 })
	wait := background(t, c, codes(800))
	until(t, func() bool { return killed.answers(t) > 20 })
	require.NoError(t, killed.cmd.Process.Kill())
	_ = killed.cmd.Wait()
	again := start(t, killed.address)
	until(t, func() bool { return again.answers(t) > 0 })
	require.NoError(t, leaving.cmd.Process.Signal(syscall.SIGTERM))
	for i, r := range wait() {
		require.Equal(t, sandbox.StatusOK, r.Status)
		require.Equal(t, fmt.Sprintf("%d\n", i), r.Stdout)
	}
	require.NoError(t, leaving.cmd.Wait(), "it ended by itself without an error")
}

// answers returns how many calls the service has answered.
func (p *process) answers(t *testing.T) (n int) {
	t.Helper()
	answer, err := http.Get("http://" + p.address + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "\nropewalk_sandbox_calls_total{status=\"ok\"} ")
	_, err = fmt.Sscan(rest, &n)
	require.NoError(t, err)
	return n
}
