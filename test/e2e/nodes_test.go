package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// TestKilledSandboxNodesLoseNothing runs tool calls on several nodes, both ways, and kills some of the nodes while they
// run calls. The policy and the record are those of the undisturbed run.
func TestKilledSandboxNodesLoseNothing(t *testing.T) {
	t.Parallel()
	h, want := withBase(t)
	h = h.with("ROPEWALK_NO_WORKER=1")
	h.ensureUp(t)
	defer h.ensureDown(t)
	require.NotContains(t, h.parts(t), "worker", "workers are the test's")

	t.Run("by address", func(t *testing.T) {
		killed, drained, left := h.serveSandbox(t), h.serveSandbox(t), h.serveSandbox(t)
		addresses := strings.Join([]string{killed.address, drained.address, left.address}, ",")
		worker := h.startWorker(t, "--sandbox-address", addresses)
		run := h.start(t, recipe("nodes-by-address")...)

		killed.whileLoaded(t, syscall.SIGKILL)
		worker.says(t, "lost a sandbox service") // the worker says so if calls were on the node
		require.Contains(t, worker.err.String(), killed.address)
		drained.whileLoaded(t, syscall.SIGTERM)
		require.Equal(t, 0, drained.wait(t).code, "it has finished its calls: %s", drained.err.String())
		require.Less(t, h.record().heads("nodes-by-address"), steps, "too late to prove anything")

		h.undisturbed(t, want, run.wait(t).ok(t).report(t))
		require.Positive(t, left.metric(t, `ropewalk_sandbox_calls_total{status="ok"}`))
		require.NotContains(t, worker.err.String(), drained.address, "a node that drains loses no call")
		worker.end(t)
	})

	t.Run("by queue", func(t *testing.T) {
		rest := h.startWorker(t, "--queues", "cpu,rollout,gpu")
		nodes := map[int]*command{}
		for range 3 {
			node := h.startWorker(t, "--queues", workflows.QueueSandbox)
			nodes[node.cmd.Process.Pid] = node
		}
		run := h.start(t, recipe("nodes-by-queue")...)
		c := h.dial(t)
		at := h.freezeInToolCalls(t, c, "nodes-by-queue")
		require.Contains(t, nodes, at.worker, "the queue's own workers execute it")
		require.NoError(t, syscall.Kill(at.worker, syscall.SIGKILL))
		nodes[at.worker].wait(t)

		h.undisturbed(t, want, run.wait(t).ok(t).report(t))
		again := startOf(t, c, at)
		require.Greater(t, again.Attempt, at.attempt)
		require.Equal(t, enumspb.TIMEOUT_TYPE_HEARTBEAT,
			again.GetLastFailure().GetTimeoutFailureInfo().GetTimeoutType())
		require.NotEqual(t, at.worker, processOf(again.Identity))
		require.Contains(t, nodes, processOf(again.Identity), "another node takes it")
		for pid, node := range nodes {
			if pid != at.worker {
				node.end(t)
			}
		}
		rest.end(t)
	})
}

// startWorker starts a worker by hand, which uses the servers of the running stack.
func (h *home) startWorker(t *testing.T, flags ...string) *command {
	t.Helper()
	servers := strings.Fields(h.run(t, "env").ok(t).out)
	return h.with(servers...).start(t, append([]string{"worker"}, flags...)...)
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

// whileLoaded signals a node while calls wait behind the one that it runs. It polls without a pause, because a call
// takes only milliseconds.
func (n sandboxNode) whileLoaded(t *testing.T, s syscall.Signal) {
	t.Helper()
	for end := time.Now().Add(patience); n.metric(t, "ropewalk_sandbox_queue_calls") < 1; {
		require.True(t, time.Now().Before(end), "calls never wait on the node")
	}
	n.signal(t, s)
}

// execution is an attempt of an activity under way.
type execution struct {
	workflow string // its id
	activity string // its id there
	attempt  int32
	worker   int // the process id
}

// freezeInToolCalls stops the process of a worker that executes the tool calls of a shard.
func (h *home) freezeInToolCalls(t *testing.T, c client.Client, run string) (at execution) {
	t.Helper()
	eventually(t, func() bool {
		step := h.record().partialStep(run)
		if step == 0 {
			return false
		}
		ok := false
		if at, ok = executing(c, workflows.StepWorkflowID(run, step)); !ok {
			return false
		}
		require.NoError(t, syscall.Kill(at.worker, syscall.SIGSTOP))
		time.Sleep(20 * time.Millisecond) // an answer in flight has arrived
		if now, ok := executing(c, at.workflow); ok && now == at {
			return true
		}
		require.NoError(t, syscall.Kill(at.worker, syscall.SIGCONT))
		return false
	}, "tool calls of %s to be executed", run)
	return at
}

// executing finds tool calls that a worker executes for a workflow.
func executing(c client.Client, workflow string) (execution, bool) {
	d, err := c.DescribeWorkflowExecution(context.Background(), workflow, "")
	if err != nil {
		return execution{}, false // it has not begun
	}
	for _, a := range d.GetPendingActivities() {
		if isStarted(a) {
			return execution{workflow, a.GetActivityId(), a.GetAttempt(), processOf(a.GetLastWorkerIdentity())}, true
		}
	}
	return execution{}, false
}

func isStarted(a *workflowpb.PendingActivityInfo) bool {
	return a.GetActivityType().GetName() == api.ExecuteToolCalls &&
		a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED
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

// startOf is the last start of an activity, as the history of its ended workflow has it.
func startOf(t *testing.T, c client.Client, at execution) *historypb.ActivityTaskStartedEventAttributes {
	t.Helper()
	scheduled := int64(0)
	for events := fetch(c, at.workflow, ""); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if a := event.GetActivityTaskScheduledEventAttributes(); a != nil && a.ActivityId == at.activity {
			scheduled = event.EventId
		}
		if a := event.GetActivityTaskStartedEventAttributes(); a != nil && a.ScheduledEventId == scheduled {
			return a
		}
	}
	t.Fatalf("%s has no activity %s", at.workflow, at.activity)
	return nil
}
