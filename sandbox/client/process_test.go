package client_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
	"github.com/ropewalk/ropewalk/sandbox/service"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/sandbox/zygote/zygotetest"
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
	return s.Serve(ctx, listener, nil, time.Minute)
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

// requirePrinted requires that codes(n) printed their numbers.
func requirePrinted(t *testing.T, results []sandbox.Result) {
	t.Helper()
	for i, r := range results {
		require.Equal(t, sandbox.StatusOK, r.Status)
		require.Equal(t, fmt.Sprintf("%d\n", i), r.Stdout)
	}
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

func TestThreeProcessesOneKilled(t *testing.T) {
	zygotetest.Need(t)
	var nodes []*process
	var addresses []string
	for range 3 {
		nodes = append(nodes, start(t, "127.0.0.1:0"))
		addresses = append(addresses, nodes[len(nodes)-1].address)
	}
	c := open(t, client.Options{Addresses: addresses})
	require.Eventually(t, func() bool { return c.Nodes() == 3 }, 10*time.Second, time.Millisecond)
	_, err := c.Run(t.Context(), codes(30)) // all services work
	require.NoError(t, err)
	wait := background(t, c, codes(1500))
	time.Sleep(100 * time.Millisecond)
	require.NoError(t, nodes[1].cmd.Process.Kill())
	requirePrinted(t, wait())
	require.Eventually(t, func() bool { return c.Nodes() == 2 }, 10*time.Second, time.Millisecond)
}

func TestAKilledProcessServesAgain(t *testing.T) {
	zygotetest.Need(t)
	first := start(t, "127.0.0.1:0")
	c := open(t, client.Options{Addresses: []string{first.address}})
	wait := background(t, c, codes(800))
	time.Sleep(100 * time.Millisecond)
	require.NoError(t, first.cmd.Process.Kill())
	_ = first.cmd.Wait()
	killed := time.Now()
	start(t, first.address)
	serving := time.Since(killed)
	requirePrinted(t, wait())
	t.Logf("it listened %s after it was killed, and all verdicts were there after %s", serving.Round(time.Millisecond),
		time.Since(killed).Round(time.Millisecond))
}

func TestATerminatedProcessFinishesItsCalls(t *testing.T) {
	zygotetest.Need(t)
	leaving, staying := start(t, "127.0.0.1:0"), start(t, "127.0.0.1:0")
	c := open(t, client.Options{Addresses: []string{leaving.address, staying.address}})
	require.Eventually(t, func() bool { return c.Nodes() == 2 }, 10*time.Second, time.Millisecond)
	wait := background(t, c, codes(600))
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, leaving.cmd.Process.Signal(syscall.SIGTERM))
	requirePrinted(t, wait())
	require.NoError(t, leaving.cmd.Wait(), "it ended by itself without an error")
}
