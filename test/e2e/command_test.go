package e2e

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/transcript"
)

// patience bounds every wait; a machine that also compiles needs half of it.
const patience = 10 * time.Minute

// command is one started `ropewalk`.
type command struct {
	home     *home
	args     []string
	cmd      *exec.Cmd
	out, err transcript.Transcript
	ended    chan struct{}
}

// result is a command that has ended.
type result struct {
	args     []string
	code     int // −1 if a signal ended it
	out, err string
}

// start starts the command; the test's end kills it if nothing else has ended it.
func (h *home) start(t *testing.T, args ...string) *command {
	t.Helper()
	line := slices.Concat(h.wrap, []string{cmp.Or(h.program, binary())}, args)
	c := &command{home: h, args: args, cmd: exec.Command(line[0], line[1:]...), ended: make(chan struct{})}
	c.cmd.Env, c.cmd.Dir = h.env, h.cwd
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	require.NoError(t, c.cmd.Start())
	go func() { _ = c.cmd.Wait(); close(c.ended) }()
	if args[0] != "up" { // that one belongs to its home
		t.Cleanup(func() { _ = c.cmd.Process.Kill(); <-c.ended })
	}
	return c
}

func (c *command) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

func (c *command) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(s))
}

// says waits until standard error holds the text.
func (c *command) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(c.err.String(), text) || !c.running() }, "%v to say %q", c.args,
		text)
	require.Contains(t, c.err.String(), text, "%v ended early", c.args)
}

func (c *command) wait(t *testing.T) result {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(patience):
		said := c.err.String()
		c.home.quitWorker(t)
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // it prints its goroutines
		<-c.ended
		t.Log(c.err.String())
		t.Fatalf("%v did not end in %s; it said:\n%s", c.args, patience, said)
	}
	return result{c.args, c.cmd.ProcessState.ExitCode(), c.out.String(), c.err.String()}
}

// quitWorker ends the worker of a home, if there is one, and shows its log, to which it prints its goroutines.
func (h *home) quitWorker(t *testing.T) {
	t.Helper()
	pid := h.state(t).Parts["worker"]
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGQUIT)
	eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, "the worker to print its goroutines")
	log, err := os.ReadFile(filepath.Join(h.dir, "logs", "worker.log"))
	t.Log(string(log), err)
}

// run runs the command to its end.
func (h *home) run(t *testing.T, args ...string) result {
	t.Helper()
	return h.start(t, args...).wait(t)
}

// ok requires success.
func (r result) ok(t *testing.T) result {
	t.Helper()
	require.Equal(t, 0, r.code, "%v said:\n%s", r.args, r.err)
	return r
}

// eventually polls until done.
func eventually(t *testing.T, done func() bool, what string, args ...any) {
	t.Helper()
	end := time.Now().Add(patience)
	for !done() {
		if time.Now().After(end) {
			t.Fatalf("waited %s for "+what, append([]any{patience}, args...)...)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// interrupt ends a command of a home by Ctrl-C. It says how the run goes on, and takes its part of the stack with it.
func (h *home) interrupt(t *testing.T, run *command, says string) {
	t.Helper()
	run.signal(t, syscall.SIGINT)
	r := run.wait(t)
	require.Equal(t, 130, r.code, r.err)
	require.Contains(t, r.err, says)
	require.Empty(t, r.out)
	require.False(t, h.runs(), "what the command started ends with it")
}
