package lease_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
)

// holderVariable makes the test binary a process that takes a lease: the folder.
const holderVariable = "ROPEWALK_TEST_LEASE_HOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderVariable); dir != "" {
		if err := hold(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hold waits for a line, takes the one device or says that it has not got it, starts a child that outlives it, and
// holds the lease until its input ends.
func hold(dir string) error {
	h, err := device.Open(device.Options{Library: devicetest.New(&devicetest.GPU{})})
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	w, err := h.Watch(device.WatchOptions{Log: quiet})
	if err != nil {
		return err
	}
	p, err := lease.Open(w, lease.Options{Dir: dir, Log: quiet})
	if err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	in.Scan()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	l, err := p.Take(ctx, lease.Request{Devices: 1})
	if err != nil {
		fmt.Println("none", err)
		return nil
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Println("taken", child.Process.Pid)
	in.Scan()
	l.Release()
	return nil
}

// process is a running holder.
type process struct {
	cmd   *exec.Cmd
	in    interface{ Close() error }
	out   *bufio.Scanner
	begin func()
}

func start(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderVariable+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{cmd: cmd, in: in, out: bufio.NewScanner(out), begin: func() { fmt.Fprintln(in, "go") }}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Equal(t, "ready", p.line(t))
	return p
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	require.True(t, p.out.Scan(), "the process has ended")
	return p.out.Text()
}

// Processes race for the last device: one gets it, and the others are told who lacks it.
func TestProcessesRaceForTheLastDevice(t *testing.T) {
	dir := t.TempDir()
	var racers []*process
	for range 4 {
		racers = append(racers, start(t, dir))
	}
	for _, p := range racers {
		p.begin()
	}
	var winners int
	for _, p := range racers {
		line := p.line(t)
		switch {
		case strings.HasPrefix(line, "taken"):
			winners++
			endChild(t, line)
		default:
			require.Contains(t, line, "device 0: leased")
		}
	}
	require.Equal(t, 1, winners)
}

// A killed holder releases its lease at once, even if a process that it started is still alive.
func TestKilledHolderLetsGo(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	first.begin()
	taken := first.line(t)
	require.True(t, strings.HasPrefix(taken, "taken"), taken)
	defer endChild(t, taken)

	p, _ := open(t, dir, devicetest.New(&devicetest.GPU{}))
	_, err := p.Take(soon(t), one())
	require.ErrorIs(t, err, lease.ErrNoDevice)
	seen, err := lease.Peek(t.Context(), dir, []string{"GPU-00000000"})
	require.NoError(t, err)
	require.True(t, seen["GPU-00000000"].Leased)
	if pid := seen["GPU-00000000"].PID; pid != 0 { // the kernel's list of locks can be seen
		require.Equal(t, first.cmd.Process.Pid, pid)
	}

	require.NoError(t, first.cmd.Process.Signal(syscall.SIGKILL))
	_ = first.cmd.Wait()
	require.NoError(t, syscall.Kill(childOf(t, taken), 0), "the child lives")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := p.Take(ctx, one())
	require.NoError(t, err)
	l.Release()
}

func childOf(t *testing.T, line string) (pid int) {
	t.Helper()
	_, err := fmt.Sscanf(line, "taken %d", &pid)
	require.NoError(t, err)
	return pid
}

func endChild(t *testing.T, line string) { _ = syscall.Kill(childOf(t, line), syscall.SIGKILL) }
