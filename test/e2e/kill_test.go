package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/ropewalk/ropewalk/schema"
)

func TestKilledWorkerLosesNothing(t *testing.T) {
	h, want := base(t)
	run := h.start(t, recipe("worker-killed")...)
	worker := h.freezeInMidStep(t, "worker-killed")
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	h.undisturbed(t, want, run.wait(t).ok(t).report(t))
	require.Contains(t, run.err.String(), "worker", "the restart is told")
	require.NotEqual(t, worker, h.state(t).Parts["worker"])
}

// freezeInMidStep stops the worker's process while a step has committed some of its stages and has
// no head, and returns its process id.
func (h *home) freezeInMidStep(t *testing.T, run string) int {
	t.Helper()
	return h.freezeWhile(t, func() bool { return h.record().partialStep(run) > 0 }, "a step of "+run+" to be half done")
}

// freezeWhile stops the worker's process while the record meets a condition, and returns its process id.
func (h *home) freezeWhile(t *testing.T, so func() bool, what string) int {
	t.Helper()
	worker := 0
	eventually(t, func() bool {
		if !so() {
			return false
		}
		worker = h.state(t).Parts["worker"]
		require.Positive(t, worker)
		require.NoError(t, syscall.Kill(worker, syscall.SIGSTOP))
		time.Sleep(20 * time.Millisecond) // a put in flight has ended
		if so() {
			return true
		}
		require.NoError(t, syscall.Kill(worker, syscall.SIGCONT))
		return false
	}, "%s", what)
	return worker
}

func TestKilledServersLoseNothing(t *testing.T) {
	h, want := base(t)
	run := h.start(t, recipe("servers-killed")...)
	for _, part := range []string{"s3", "temporal"} {
		eventually(t, func() bool { return h.record().partialStep("servers-killed") > 0 || !run.running() },
			"a step to be half done")
		pid := h.state(t).Parts[part]
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		eventually(t, func() bool { now := h.state(t).Parts[part]; return now > 0 && now != pid },
			"%s to be started again", part)
	}
	h.undisturbed(t, want, run.wait(t).ok(t).report(t))
}

// Commands of a killed supervisor continue with the next supervisor. Both servers and the worker die with the first.
func TestKilledSupervisorLosesNothing(t *testing.T) {
	h, want := base(t)
	run := h.start(t, recipe("supervisor-killed")...)
	eventually(t, func() bool { return h.record().partialStep("supervisor-killed") > 0 || !run.running() },
		"a step to be half done")
	was := h.state(t)
	require.NoError(t, syscall.Kill(was.PID, syscall.SIGKILL))
	r := run.wait(t).ok(t)
	require.Contains(t, r.err, "the local stack's supervisor has died: joining the next one")
	h.undisturbed(t, want, r.report(t))
	now := h.state(t)
	require.NotEqual(t, was.PID, now.PID)
	require.Equal(t, was.Addresses, now.Addresses)
}

// A reset ends the execution that the command follows. The command continues with the execution that the reset made.
func TestInterruptByResetIsFollowed(t *testing.T) {
	h, want := base(t)
	run := h.start(t, recipe("reset")...)
	eventually(t, func() bool { return h.record().heads("reset") > 0 || !run.running() }, "the first step")
	c := h.dial(t)
	at := int64(0)
	for events := fetch(c, "reset", ""); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED && at == 0 {
			at = e.GetEventId()
		}
	}
	require.Positive(t, at)
	_, err := c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: h.state(t).Addresses.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "reset"},
		Reason: "a test", WorkflowTaskFinishEventId: at, RequestId: "reset",
	})
	require.NoError(t, err)
	h.undisturbed(t, want, run.wait(t).ok(t).report(t))
}

// For a damaged database of Temporal, the error says what to do. A run needs only the record.
func TestDamagedDatabaseIsMovedAside(t *testing.T) {
	h, want := down(t)
	h.interrupt(t, "database-damaged")
	db := filepath.Join(h.dir, "temporal.db")
	require.NoError(t, os.WriteFile(db, []byte("what a failing disk gave back"), 0o600))
	r := h.run(t, "resume", "database-damaged", "--json")
	require.Equal(t, 1, r.code, r.err)
	require.Contains(t, r.err, "ropewalk up --reset-temporal")
	h.up = h.start(t, "up", "--reset-temporal")
	h.up.says(t, "the stack stays up")
	require.Contains(t, h.up.err.String(), "Temporal's database is now "+db+".aside-")
	h.undisturbed(t, want, h.run(t, "resume", "database-damaged", "--json").ok(t).report(t))
}

func TestUpEndsCleanly(t *testing.T) {
	t.Parallel()
	h := newHome(t, t.TempDir())
	h.ensureUp(t)
	var pids []int
	for _, pid := range h.state(t).Parts {
		pids = append(pids, pid)
	}
	require.Len(t, pids, 3)
	h.ensureDown(t)
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	left, err := os.ReadDir(h.tmp)
	require.NoError(t, err)
	require.Empty(t, left, "scratch folders are removed")
}

func TestInterruptedRunGoesOn(t *testing.T) {
	h, want := down(t)
	h.interrupt(t, "interrupted")
	require.Less(t, h.record().heads("interrupted"), steps, "interrupted too late to prove anything")
	r := h.run(t, "resume", "interrupted", "--json").ok(t)
	h.ensureUp(t)
	h.undisturbed(t, want, r.report(t))
	require.Equal(t, "its command was interrupted; go on with: ropewalk resume interrupted",
		h.cancelledBecause(t, "interrupted"))
}

// cancelledBecause returns the reason that Temporal shows for a run's only cancelled execution.
func (h *home) cancelledBecause(t *testing.T, run string) string {
	t.Helper()
	c := h.dial(t)
	var found []*workflowpb.WorkflowExecutionInfo
	eventually(t, func() bool { // visibility lags behind
		list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf(`WorkflowId="%s" and ExecutionStatus="Canceled"`, run)})
		require.NoError(t, err)
		found = list.GetExecutions()
		return len(found) > 0
	}, "a cancelled execution of %s", run)
	require.Len(t, found, 1)
	for events := fetch(c, run, found[0].GetExecution().GetRunId()); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		if a := e.GetWorkflowExecutionCancelRequestedEventAttributes(); a != nil {
			return a.GetCause()
		}
	}
	require.Fail(t, "the history has no request to cancel")
	return ""
}

// interrupt starts a run without a separate stack and sends it Ctrl-C after its first step.
func (h *home) interrupt(t *testing.T, name string) {
	t.Helper()
	run := h.start(t, recipe(name)...)
	eventually(t, func() bool { return h.record().heads(name) > 0 }, "the first step of %s", name)
	run.signal(t, syscall.SIGINT)
	r := run.wait(t)
	require.Equal(t, 130, r.code, r.err)
	require.Contains(t, r.err, "ropewalk resume "+name)
	require.Empty(t, r.out)
	require.NoFileExists(t, filepath.Join(h.dir, "stack.json"), "the stack ends with the command")
}

func TestKilledCommandGoesOn(t *testing.T) {
	h, want := down(t)
	run := h.start(t, recipe("command-killed")...)
	eventually(t, func() bool { return h.record().heads("command-killed") > 0 }, "the first step")
	run.signal(t, syscall.SIGKILL)
	run.wait(t)
	require.Less(t, h.record().heads("command-killed"), steps)
	r := h.run(t, "resume", "command-killed", "--json").ok(t)
	h.ensureUp(t)
	h.undisturbed(t, want, r.report(t))
}

func TestRunGoesOnWithoutItsHistory(t *testing.T) {
	h, want := down(t)
	h.interrupt(t, "forgotten")
	finished := h.record().heads("forgotten")
	before := h.stamps(t, "forgotten")
	h.forget(t)
	r := h.run(t, "resume", "forgotten", "--json").ok(t)
	h.ensureUp(t)
	h.undisturbed(t, want, r.report(t))
	require.Less(t, finished, steps)
	after := h.stamps(t, "forgotten")
	for key, stamp := range before {
		require.Equal(t, stamp, after[key], "%s was committed and is written again", key)
	}
}

// forget deletes the database of the Temporal server, which is down.
func (h *home) forget(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, "temporal.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		require.NoError(t, os.Remove(f))
	}
}

// stamps returns when each committed manifest of a run was written.
func (h *home) stamps(t *testing.T, run string) map[string]time.Time {
	t.Helper()
	out := map[string]time.Time{}
	for _, key := range h.record().keys(schema.ManifestsPrefix(run)) {
		info, err := os.Stat(h.record().path(key))
		require.NoError(t, err)
		out[key] = info.ModTime()
	}
	require.NotEmpty(t, out)
	return out
}
