package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
)

// TestKilledSandboxNodesLoseNothing runs tool calls on several nodes and kills one while it runs calls. Another one
// drains. The policy and the record are those of the undisturbed run.
func TestKilledSandboxNodesLoseNothing(t *testing.T) {
	longform.Need(t, "ROPEWALK_FAR_WORKERS", "test-rollout-workers")
	h, want := needs(t, ownNamespace)
	killed, drained, left := h.serveSandbox(t), h.serveSandbox(t), h.serveSandbox(t)
	addresses := strings.Join([]string{killed.address, drained.address, left.address}, ",")
	worker := h.startWorker(t, "--sandbox-address", addresses)
	for _, n := range []sandboxNode{killed, drained} {
		signalChildren(t, n.cmd.Process.Pid, syscall.SIGSTOP) // its calls do not end
	}
	run := h.with("ROPEWALK_NO_WORKER=1").start(t, recipe("nodes")...)

	killed.loaded(t)
	killed.signal(t, syscall.SIGKILL)
	worker.says(t, "lost a sandbox service")
	require.Contains(t, worker.err.String(), killed.address)
	drained.loaded(t)
	drained.signal(t, syscall.SIGTERM)
	signalChildren(t, drained.cmd.Process.Pid, syscall.SIGCONT)
	require.Equal(t, 0, drained.wait(t).code, "it has finished its calls: %s", drained.err.String())

	h.undisturbed(t, want, run.wait(t).ok(t).report(t))
	require.Positive(t, left.metric(t, `ropewalk_sandbox_calls_total{status="ok"}`))
	require.NotContains(t, worker.err.String(), drained.address, "a node that drains loses no call")
	worker.end(t)
}

// startWorker starts a worker by hand. A stack's own servers are selected by the environment that the stack prints.
func (h *home) startWorker(t *testing.T, flags ...string) *command {
	t.Helper()
	if h.namespace == "" {
		h = h.with(strings.Fields(h.run(t, "env").ok(t).out)...)
	}
	return h.start(t, append([]string{"worker"}, flags...)...)
}

// end makes a command end by itself.
func (c *command) end(t *testing.T) {
	t.Helper()
	c.signal(t, syscall.SIGTERM)
	require.Equal(t, 0, c.wait(t).code, c.err.String())
}

// sandboxNode is one `ropewalk sandbox serve`, which runs a call at a time.
type sandboxNode struct {
	*command
	address string
}

var listening = regexp.MustCompile(`listening on http://(\S+): `)

func (h *home) serveSandbox(t *testing.T, flags ...string) sandboxNode {
	t.Helper()
	c := h.start(t, append([]string{"sandbox", "serve", "--listen", "127.0.0.1:0", "--workers", "1"}, flags...)...)
	var said []string
	eventually(t, func() bool {
		said = listening.FindStringSubmatch(c.out.String())
		return said != nil ||
			!c.running()
	}, "a node to listen")
	require.NotNil(t, said, c.err.String())
	return sandboxNode{c, said[1]}
}

// metric reads one of the node's figures.
func (n sandboxNode) metric(t *testing.T, name string) float64 {
	t.Helper()
	r, err := http.Get("http://" + n.address + "/metrics")
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(t, err)
			return number
		}
	}
	t.Fatalf("the node has no metric %s:\n%s", name, text)
	return 0
}

// loaded waits until calls wait behind the one that a node runs.
func (n sandboxNode) loaded(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return n.metric(t, "ropewalk_sandbox_queue_calls") > 0 }, "calls to wait on the node")
}

// execution is an attempt of an activity under way.
type execution struct {
	workflow string // its id
	activity string // its id there
	attempt  int32
	worker   int // the process id
}

// processOf is the process id in a worker's identity, PID@HOST@….
func processOf(identity string) int {
	text, _, _ := strings.Cut(identity, "@")
	pid, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("worker identity %q names no process", identity))
	}
	return pid
}
